// Sets of runs side by side on one axis, and the ratio of each to the first.
"use strict";

(() => {
  const { element, section, figure } = iobands;
  // The colour of each set, its dashes in the chart, and its line style in the table.
  const LINES = [
    ["median", [], "solid"], ["below-mark", [8, 4], "dashed"], ["within-mark", [2, 3], "dotted"],
    ["collapsed-mark", [10, 3, 2, 3], "dashed"], ["other", [5, 5], "dashed"], ["soft", [1, 5], "dotted"],
  ];
  iobands.mostSets = LINES.length;

  // For each comparable field, the ids of series that differ only in it and in what follows.
  iobands.neighbours = (series) => {
    const seen = new Set();
    return Object.entries(iobands.site.comparable).map(([field, follows]) => {
      const differ = iobands.site.series.filter((other) => other.variable === series.variable && other.fields[field] !== series.fields[field]
        && fieldsOf(series, other).every((name) => name === field || follows.includes(name)));
      return [field, differ.map((other) => other.id)];
    }).filter(([, ids]) => ids.length && !seen.has(ids.join()) && seen.add(ids.join()));
  };
  // The fields in which two series differ.
  const fieldsOf = (one, other) => Object.keys({ ...one.fields, ...other.fields }).filter((name) => one.fields[name] !== other.fields[name]);

  // The fields that make a ratio of two series meaningless; empty if they differ in one setting.
  function unlike(one, other) {
    const names = fieldsOf(one, other);
    if (one.variable !== other.variable) return [...names, "variable"];
    const isOneSetting = Object.entries(iobands.site.comparable)
      .some(([field, follows]) => names.every((name) => name === field || follows.includes(name)));
    return names.length && !isOneSetting ? names : [];
  }

  const begin = (day) => Date.parse(`${day}T00:00Z`) / 1000;
  // The sets in an address: each is ID or ID@FROM..TO.
  const parse = (text) => (text ?? "").split(",").map((part) => part.match(/^(\w+)(?:@(\S+)\.\.(\S+))?$/))
    .filter((found) => found && iobands.byId.has(found[1]) && found.slice(2).every((day) => !day || begin(day))).slice(0, iobands.mostSets)
    .map(([set, id, from, to]) => ({ set, id, from, to }));

  function labelOf({ id, from, to }) {
    const { label } = iobands.byId.get(id);
    return from ? `${label}, ${[from, to].map(begin).map(iobands.day).join(" to ")}` : label;
  }

  async function runsOf(set) {
    const history = await iobands.history(set.id);
    if (!set.from) return history;
    return { ...history, ...iobands.between(history, begin(set.from), begin(set.to) + 86399) };
  }

  function chooser(sets, change) {
    const options = element("datalist", { id: "every-series" }, iobands.site.series.slice(0, 1000).map((each) => element("option", { value: each.label })));
    const name = element("input", { id: "add", type: "search", list: "every-series" });
    const [from, to] = ["from", "to"].map((id) => element("input", { id: `add-${id}`, type: "date" }));
    const says = element("span", { role: "status" });
    return element("form", { class: "filter", onsubmit: (event) => {
      event.preventDefault();
      const found = iobands.site.series.find((each) => each.label === name.value.trim()) ?? iobands.chosen({ q: name.value })[0];
      if (!found || sets.length >= iobands.mostSets) {
        says.textContent = found ? `No more than ${iobands.mostSets} sets.` : "No series has these words.";
        return;
      }
      if (!from.value !== !to.value || from.value > to.value) {
        says.textContent = "Give the first and the last day, or neither.";
        return;
      }
      change([...sets.map((each) => each.set), from.value ? `${found.id}@${from.value}..${to.value}` : found.id]);
    } },
    element("label", { for: "add" }, "Add a series"), name, options,
    element("label", { for: "add-from" }, "from"), from, element("label", { for: "add-to" }, "to"), to,
    element("button", { type: "submit" }, "Add"), says);
  }

  function ratioRow(set, place, histories, sets, change) {
    const history = histories[place];
    const line = element("span", { class: "line", "aria-hidden": "true" });
    line.style.borderTop = `3px ${LINES[place][2]} var(--${LINES[place][0]})`;
    const base = histories[0];
    const quartiles = iobands.quartiles(history.values).map(figure);
    const isAlike = base.series.unit === history.series.unit;
    const others = unlike(history.series, base.series);
    const ratio = place && isAlike && !others.length ? iobands.ratio(history, base) : null;
    const differs = ratio && !(ratio.low <= 1 && 1 <= ratio.high);
    const text = !place ? "1: the others are divided by this one" : !isAlike ? "not compared or drawn: it has another unit" : others.length ? `no ratio: the ${others.map(iobands.nameOf).join(", ")} ${others.length === 1 ? "differs" : "differ"}` : !ratio ? "too few runs"
      : `${figure(ratio.ratio)} × (${figure(ratio.low)} to ${figure(ratio.high)})${differs ? "" : ", no difference shown"}`;
    return element("tr", {},
      element("th", { scope: "row" }, line, " ", iobands.link(set.id, labelOf(set))),
      element("td", { class: "n", "data-label": "Runs" }, history.values.length),
      element("td", { class: "wide", "data-label": "Quartiles" }, quartiles.length ? `${quartiles.join("–")} ${history.series.unit}` : "–"),
      element("td", { class: "wide", "data-label": "Ratio" }, text, ratio ? element("span", { class: "note" }, ` ${ratio.how}`) : ""),
      element("td", {}, element("button", { type: "button", "aria-label": `Remove ${labelOf(set)}`,
        onclick: () => change(sets.filter((each) => each !== set).map((each) => each.set)) }, "×")));
  }

  iobands.showCompare = async (main, settings) => {
    const sets = parse(settings.sets);
    const change = (names) => { location.hash = iobands.address("compare", { sets: names.join(",") }); };
    const parts = [element("h1", {}, "Compare"), chooser(sets, change)];
    main.replaceChildren(...parts);
    if (!sets.length) {
      main.append(element("p", { class: "card plain" },
        "Add two series, or one series twice with different dates. The page of a series links to the series that differ from it in one setting, and to its month before."), suggestions());
      return;
    }
    await iobands.ready;
    const histories = await Promise.all(sets.map(runsOf));
    if (iobands.place().settings.sets !== settings.sets) return;
    const together = element("div", { class: "chart card", tabindex: "0", role: "img", "aria-label": `${sets.map(labelOf).join("; ")}, against time; the table above has the figures. Plus and minus zoom, 0 shows all.` });
    const time = element("div");
    const table = iobands.table("Table of ratios", ["Set", "Runs", "Quartiles", "Ratio with 95 % interval", "Remove"],
      sets.map((set, place) => () => ratioRow(set, place, histories, sets, change)), "cards");
    main.replaceChildren(...parts, section("ratios", "Ratios", table), section("together", "On one axis", time, together));
    const drawn = histories.map((history, place) => ({ history, place }))
      .filter(({ history }) => history.times.length && history.series.unit === histories[0].series.unit);
    if (!drawn.length) return;
    // Sets with different first days are shifted to the first day of the first set.
    const spans = sets.every((set) => set.from) && new Set(sets.map((set) => set.from)).size > 1;
    const shift = (history, place) => (spans ? begin(sets[0].from) - begin(sets[place].from) : 0);
    let plot;
    function draw() {
      plot?.destroy();
      together.replaceChildren();
      const variables = [...new Set(drawn.map(({ history }) => history.series.variable))];
      const title = `${variables.join(", ")} in ${drawn[0].history.series.unit}`;
      plot = iobands.chart(together, { title, height: 360, lines: drawn.map(({ history, place }) => ({
        times: history.times.map((each) => each + shift(history, place)), values: history.values,
        colour: LINES[place][0], dash: LINES[place][1], width: 1.5, points: history.times.length < 120 })) });
      const times = plot.data[0];
      const whole = [times[0] - 3600, times.at(-1) + 3600];
      time.replaceChildren(iobands.together([plot], whole), spans ? element("p", { class: "note" }, "Each set is shifted to the dates of the first.") : "");
    }
    draw();
    iobands.leave = iobands.redraw(draw);
  };

  // Suggested comparisons: for each field the first series that has one.
  function suggestions() {
    const items = [];
    for (const field of Object.keys(iobands.site.comparable)) {
      for (const series of iobands.site.series.slice(0, 200)) {
        const found = iobands.neighbours(series).find(([name]) => name === field);
        if (found) {
          const ids = [series.id, ...found[1]].slice(0, iobands.mostSets);
          items.push(element("li", {}, element("a", { href: iobands.address("compare", { sets: ids.join(",") }) },
            `${iobands.nameOf(field)}: ${ids.map((id) => iobands.byId.get(id).fields[field] ?? "none").join(", ")}`), ` of ${series.label}`));
          break;
        }
      }
    }
    return items.length ? section("suggestions", "For example", element("ul", { class: "card" }, items)) : "";
  }
})();
