// The front page: alerts, heat maps, recent changes, all series, file systems, and remarks.
"use strict";

(() => {
  const { element, section, tag, link, plural } = iobands;
  const MOST_ROWS = 100;
  const ON_A_PHONE = 12;

  // Severity, subject, number of series, level, date and certainty of an alert, as in the digest.
  iobands.alertText = (alert, name) => [tag(alert.severity, alert.severity, alert.quiet || alert.severity === "collapsed"), " ", element("strong", {}, name),
    alert.counted ? ` (${alert.counted}) ` : " ",
    alert.says.map((text) => (text === alert.certainty && text !== "certain" ? `certainty: ${text}` : text)).join(" · ")];

  function alertItem(alert) {
    const about = alert.series.filter((id) => iobands.byId.has(id));
    const item = element("li", {}, iobands.alertText(alert, about.length === 1 && !alert.page ? link(about[0], alert.subject) : iobands.alertLink(alert)));
    if (about.length > 1) {
      item.append(element("details", {}, element("summary", {}, `its ${about.length} series`),
        element("ul", { class: "under" },
          about.map((id) => element("li", {}, link(id, iobands.byId.get(id).label))))));
    }
    return item;
  }

  function alerts(site) {
    const found = [];
    for (const heading of ["Needs attention", "Acknowledged", "For information"]) {
      const here = site.alerts.filter((alert) => alert.heading === heading);
      found.push(iobands.list(heading.replace(/ /g, "-").toLowerCase(), site.public && heading === "Needs attention" ? "Known trouble" : heading, here.map((alert) => () => alertItem(alert)), 16));
    }
    const has = (heading) => site.alerts.some((alert) => alert.heading === heading);
    if (!has("Needs attention") && site.series.length) {
      found.unshift(element("p", { class: "card plain" }, calibration(site) ?? (has("Acknowledged")
        ? "Every alert that needs attention is acknowledged." : "Nothing needs attention: no series has become worse, and no sample is missing.")));
    }
    return found;
  }

  // How many runs a new site needs before a series can be judged; null if one can be.
  function calibration(site) {
    const waiting = site.series.filter((series) => series.state === "calibrating");
    if (waiting.length < site.series.length) return null;
    const left = Math.min(...waiting.map((series) => series.left));
    const time = iobands.duration(left * site.interval);
    return `Nothing can be judged yet: a run is judged by at least ${site.enough} earlier ones. The first series needs `
      + `${left} more ${left === 1 ? "run" : "runs"}, about ${time} with a run every ${iobands.duration(site.interval)}.`;
  }

  function lately(site) {
    return iobands.list("lately", "What changed lately", site.lately.map((each) => () => element("li", {},
      element("span", { class: "when" }, iobands.day(each.since)), " ",
      iobands.alertLink(each), ` ${each.change} · `,
      each.ended ? `until ${iobands.day(each.ended)} · ${each.end}` : each.end)), 8);
  }

  function fileSystems(site) {
    if (!site.file_systems.length) return null;
    const known = (name) => site.file_systems.some((each) => each[name] !== null && each[name] !== undefined);
    const several = new Set(site.file_systems.map((each) => each.system)).size > 1;
    const targets = (each) => each.targets_active === null ? "–"
      : `${each.targets_active} in service${each.targets_inactive ? `, ${each.targets_inactive} not` : ""}`;
    const columns = [
      ["File system", (each) => several ? `${each.name} (${each.system})` : each.name],
      known("path") && ["Path", (each) => each.path ?? "–"],
      ["Type", (each) => [each.file_system_type, each.medium].filter(Boolean).join(", ") || "–"],
      known("size_gib") && ["Size", (each) => each.size_gib ? `${iobands.figure(each.size_gib)} GiB` : "–"],
      known("fullness_percent") && ["Full", (each) => each.fullness_percent === null ? "–" : `${iobands.figure(each.fullness_percent)} %`],
      known("targets_active") && ["Targets", targets],
      ["Outliers", (each) => (each.outliers ? `${each.outliers} runs` : "–")],
      ["Newest run", (each) => iobands.minute(each.when)],
    ].filter(Boolean);
    const headings = columns.map(([name]) => name);
    return section("file-systems", "File systems",
      iobands.table("Table of file systems", headings, site.file_systems.map((each) => () =>
        iobands.cardRow(headings, columns.map(([, cell]) => cell(each)))), "cards"),
      element("p", { class: "note" }, "As seen by the newest run of each. An outlier is a run below the floor of its band, outside a lasting drop. A healthy run hardly ever lies below the floor."));
  }

  function seriesRow(series) {
    const cell = (name, ...content) => element("td", { "data-label": name }, content);
    return element("tr", {},
      element("th", { scope: "row" }, link(series.id, series.label), series.effect ? element("span", { class: "note" }, series.effect) : ""),
      cell("State", tag(series.state, series.says, series.quiet)),
      cell("Newest", series.value === null ? "–" : `${series.value} ${series.unit}`),
      cell("Verdict", tag(series.verdict)),
      cell("Band", series.band || (series.state === "calibrating" ? `${plural(series.left, "run")} to go` : "–")),
      element("td", { class: "trend", "aria-hidden": "true" }, series.trend),
      cell("When", series.when === null ? "never" : iobands.minute(series.when)));
  }

  function seriesTable(chosen) {
    const states = ["degraded", "mode lost", "sliding", "unstable", "no data", "watch", "improved", "healthy", "calibrating"];
    const worst = [...chosen].sort((one, other) => states.indexOf(one.state) - states.indexOf(other.state));
    return [
      ...iobands.table("Table of series", ["Series and settings in effect", "State", "Newest", "Verdict", "Band", "Trend", "When"],
        worst.map((series) => () => seriesRow(series)), "cards", iobands.onAPhone() ? ON_A_PHONE : MOST_ROWS),
      element("details", {}, element("summary", {}, "What the names and columns mean"),
        element("p", { class: "note" }, "A name has the file system, the pattern, the settings and the variable. Patterns: serial (one process writes one file), fpp (a file per process), fpn (a file per node), ssf (all processes write a single shared file)."),
        element("p", { class: "note" }, "State: the level has fallen suddenly (degraded) or gradually (sliding); no run reaches the upper of two levels any more (mode lost); runs vary about twice as much (unstable); the last runs look lower, which may be chance (watch); the level has risen (improved); the newest expected run is missing (no data); too few runs to judge (calibrating)."),
        element("p", { class: "note" },
        "In effect: the settings that the newest run really used. Band: lower quartile–median–upper quartile; ~ marks a provisional band, learned from the series' own runs. A quarter of healthy runs lie below the lower quartile. The trend shows the newest runs, from the lowest to the highest.")),
    ];
  }

  // The series in `state` whose label or field values contain every word of `q`.
  iobands.chosen = ({ q = "", state = "" }) => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    return iobands.site.series.filter((series) => {
      if (state && series.state !== state) return false;
      const text = [series.label, series.variable, ...Object.values(series.fields)].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  };

  function filter(site, settings, change) {
    // the state in the address remains a choice even if no series is in it now
    const states = [...new Set([...site.series.map((series) => series.state), settings.state].filter(Boolean))];
    const search = element("input", { id: "q", type: "search", value: settings.q ?? "", maxlength: "100",
      oninput: () => change({ q: search.value }) });
    const state = element("select", { id: "state-filter", onchange: () => change({ state: state.value }) },
      element("option", { value: "" }, "any"),
      states.map((name) => element("option", { value: name, selected: name === settings.state }, name)));
    return element("form", { class: "filter", role: "search", onsubmit: (event) => event.preventDefault() },
      element("label", { for: "q" }, "Show only"), search,
      element("label", { for: "state-filter" }, "in state"), state,
      element("output", { id: "found", for: "q state-filter" }));
  }

  const lines = (id, heading, texts = [], note = "") =>
    iobands.list(id, heading, texts.map((text) => () => element("li", {}, text)), 10, note);

  iobands.showFront = (main, settings) => {
    const { site } = iobands;
    const map = element("div");
    const table = element("div");
    function change(settings) {
      iobands.keep(settings);
      show();
    }
    function show() {
      const settings = iobands.place().settings;
      const chosen = iobands.chosen(settings);
      iobands.heatMap(map, new Set(chosen.map((series) => series.id)));
      table.replaceChildren(...seriesTable(chosen));
      document.getElementById("found").textContent = `${chosen.length} of ${plural(site.series.length, "series")}`;
    }
    main.replaceChildren(...[
      element("h1", { class: "unseen" }, "I/O performance"),
      site.public ? null : alerts(site),
      lines("uneven", "Uneven placement of files on storage targets", site.uneven),
      site.users.map(iobands.block),
      site.public ? alerts(site) : null,
      site.series.length ? section("recent", "The last sessions", filter(site, settings, change), map) : null,
      iobands.peerMaps(site.places, true),
      lately(site),
      site.series.length ? section("series", "Series", table) : null,
      iobands.peerMaps(site.places, false),
      fileSystems(site),
      lines("maintenance", "Maintenance", site.maintenance),
      iobands.list("reports", "Before and after maintenance", site.reports.map(([says, title, page]) => () =>
        element("li", {}, element("a", { href: page }, title), `: ${says}`)), 10),
      lines("not-measured", "Not measured", site.not_measured),
      lines("superseded", "Superseded series", site.superseded, "Their checks now run at another scale."),
      lines("left-behind", site.left_behind, site.leftovers, "iobands clean tries to remove them again."),
      lines("rejected", `Rejected lines: ${site.rejected_lines}`, site.rejected),
    ].flat(Infinity).filter(Boolean));
    if (site.series.length) show();
  };
})();
