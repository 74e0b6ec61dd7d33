// The heat map: a row per group of series, a column per session, a cell with the worst verdict.
"use strict";

(() => {
  const { element } = iobands;
  const CELLS = iobands.cells = {
    a: "above", w: "within", b: "below", c: "collapsed", n: "no band",
    ".": "no run", m: "run failed", p: "maintenance",
  };
  const MARKS = { a: "▲", w: "●", b: "▼", c: "✖", n: "○", ".": "", m: "!", p: "M" };
  const RANK = "mcbnwap."; // worst first; a blank cell was not selected, or precedes the first run
  const MOST_ROWS = 60;
  const ON_A_PHONE = 14;

  // The index of the first session that is shown.
  iobands.firstSession = (sessions) => (iobands.onAPhone() ? Math.max(0, sessions.length - ON_A_PHONE) : 0);

  // A heat map with `most` rows at first, and a button for more. Each seventh column has its date.
  iobands.heatTable = (label, noun, times, rows, most) => iobands.table(label, [noun[0].toUpperCase() + noun.slice(1), ...times.map((time, place) => [
    element("span", { class: "day", "aria-hidden": "true" }, place % 7 === (times.length - 1) % 7 ? iobands.shortDay(time) : ""),
    element("span", { class: "unseen" }, iobands.day(time))])], rows, "heat", most);

  function legend() {
    return element("p", { class: "note key" }, element("span", {}, "The worst verdict of a session:"),
      Object.entries(CELLS).map(([cell, name]) => iobands.key(name, MARKS[cell], name)));
  }

  // The badness of a row in the last seven sessions, the newest counting most.
  const badness = (row) => [...row.cells].reverse().slice(0, 7)
    .reduce((sum, cell, age) => sum + (cell === "c" || cell === "m" ? 3 : cell === "b" ? 1 : 0) / (1 + age / 4), 0);

  function kindOf(row, several) {
    const [fileSystem, pattern, variable, transport, system] = row.kind;
    return [several ? system : "", fileSystem, pattern, variable, ["default", "none"].includes(transport) ? "" : transport]
      .filter(Boolean).join(" ");
  }

  // The alert with a page that was open for a series of the row between a session and the next.
  const alertOf = ({ series }, time, next) => [...iobands.site.alerts, ...iobands.site.over].find((alert) => alert.page
    && alert.since < next && time < (alert.ended ?? Infinity) && alert.series.some((id) => series.includes(id)));

  function cellOf(row, name, column, time) {
    const cell = row.cells[column];
    if (cell === " ") return element("td");
    const id = row.series[row.which ? row.which[column] : 0];
    const alert = cell === "c" ? alertOf(row, time, iobands.site.sessions[column + 1] ?? Infinity) : null;
    const says = `${iobands.minute(time)}: ${CELLS[cell]}${alert ? `, alert ${alert.subject}` : ""}`;
    return element("td", {},
      element("a", {
        class: `cell ${CELLS[cell].replace(" ", "-")}`, tabindex: "-1", title: says,
        href: alert?.page || iobands.address(`series/${id}`, { at: iobands.isoMinute(time) }),
        "aria-label": `${name}, ${says}`,
      }, MARKS[cell]));
  }

  // The tab key reaches one cell; the arrow keys move to the others.
  function withArrowKeys(table) {
    const first = [...table.querySelectorAll("tr:first-child a.cell")].at(-1);
    if (first) first.tabIndex = 0;
    table.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step || !event.target.matches("a.cell")) return;
      let cell = event.target.closest("td");
      let next = null;
      while (cell && !next) { // blank cells are skipped
        cell = table.rows[cell.parentElement.rowIndex + step[0]]?.cells[cell.cellIndex + step[1]];
        next = cell?.querySelector("a.cell");
      }
      if (next) {
        event.target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
      event.preventDefault();
    });
  }

  iobands.heatMap = (container, chosen) => {
    const { rows, sessions } = iobands.site;
    const shown = rows.filter((row) => row.series.some((id) => chosen.has(id)))
      .sort((one, other) => badness(other) - badness(one));
    const columns = sessions.map((time, column) => [time, column]).slice(iobands.firstSession(sessions));
    const several = new Set(rows.map((row) => row.kind[4])).size > 1;
    const makers = shown.map((row) => () => {
      const name = kindOf(row, several);
      return element("tr", {},
        element("th", { scope: "row" }, row.series.length === 1
          ? iobands.link(row.series[0], name)
          : element("a", { href: iobands.address("", { q: name }) }, name)),
        columns.map(([time, column]) => cellOf(row, name, column, time)));
    });
    const parts = iobands.heatTable("Heat map of the last sessions; arrow keys move between cells", "Series", columns.map(([time]) => time), makers, MOST_ROWS);
    withArrowKeys(parts[0].firstChild);
    container.replaceChildren(sentence(shown, sessions), ...parts, legend());
  };

  function sentence(rows, sessions) {
    if (!sessions.length || !rows.length) return element("p", {}, "No recent sessions.");
    const newest = rows.map((row) => row.cells.at(-1));
    const counts = [...RANK].filter((cell) => newest.includes(cell))
      .map((cell) => `${newest.filter((each) => each === cell).length} ${CELLS[cell]}`);
    const others = newest.filter((cell) => cell === " ").length;
    return element("p", {}, `Newest session, ${iobands.minute(sessions.at(-1))}: of `
      + `${iobands.plural(rows.length, "row")}, ${[...counts, ...(others ? [`${others} not selected`] : [])].join(", ")}.`);
  }
})();
