"""One check for each case of four texts on parallel I/O (docs/cases.md); run by `-t case`."""
