"""What `make bench` and the `make bench-*` targets measure; each writes a page of docs/.

The modules here compare benchio with IOR, fio and itself, and measure the memory that it takes.
They know benchio's command line and result file, and the files of the other programs. `session`
runs iobands; `alarms` and `reading` measure its judge, readers, stores and dashboards.
"""
