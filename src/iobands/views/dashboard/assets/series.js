// The page of a series: its runs, and everything that explains them.
"use strict";

(() => {
  const { element, section, tag, plural, figure, nameOf } = iobands;
  const TABLE_ROWS = 100;
  const BINS = 40;
  const NO_CHART = new Set(["stripe_count", "stripe_size", "targets_active"]);

  // The index of the first of the ordered times from `time` on, or else of the last.
  const firstFrom = (times, time) => {
    const place = times.findIndex((each) => each >= time);
    return place < 0 ? times.length - 1 : place;
  };
  const nearest = (times, time) => {
    const place = firstFrom(times, time);
    return time - times[place - 1] < times[place] - time ? place - 1 : place;
  };

  function runText(history, place) {
    const { series } = history;
    const value = `${figure(history.values[place])} ${series.unit}`;
    const details = history.columns.map((column) => [nameOf(column), history.cells[place](column)])
      .filter(([, cell]) => cell !== null).map(([name, cell]) => `${name}: ${cell}`);
    return [
      element("p", {}, element("strong", {}, `${iobands.minute(history.times[place])}: ${value} `),
        tag(history.verdicts[place]), ` run ${place + 1} of ${history.times.length}`),
      element("p", {}, details.join(" · ")),
    ];
  }

  function sentence({ times, values }, unit) {
    if (!values.length) return "No run in view.";
    const [least, low, middle, high, most] = iobands.quantiles(values, [0, 0.25, 0.5, 0.75, 1]).map(figure);
    return `In view: ${plural(values.length, "run")} from ${iobands.day(times[0])} to ${iobands.day(times.at(-1))}; median ${middle} `
      + `${unit}, half from ${low} to ${high}, all from ${least} to ${most}.`;
  }

  // A histogram on the value axis of the chart, from 0 to `top`.
  function distribution({ values }, top) {
    if (!values.length) return "";
    const counts = new Array(BINS).fill(0);
    values.forEach((value) => { counts[Math.max(0, Math.min(BINS - 1, Math.floor((BINS * value) / top)))] += 1; });
    const most = Math.max(...counts);
    return [
      element("p", { class: "title" }, "Distribution in view"),
      element("svg", { viewBox: `0 0 100 ${BINS * 8}`, preserveAspectRatio: "none", "aria-hidden": "true" }, counts.map((count, bin) =>
        element("rect", { x: 0, y: (BINS - 1 - bin) * 8, height: 7, width: (100 * count) / most }))),
      element("p", { class: "note" }, `On the scale of the chart; the longest bar is ${plural(most, "run")}`),
    ];
  }

  function events(history) {
    const until = (end) => (end ? ` to ${iobands.day(end)}` : ", still");
    return [
      ...history.changes.map((each) => [each.since, `Change: ${each.says}${each.ended ? `, ended ${iobands.day(each.ended)}: ${each.end}` : "; not over"}`]),
      ...history.incidents.map((each) => [each.since, `Incident ${each.name}: ${iobands.day(each.since)}`
        + `${until(each.is_open ? null : each.until)}, ${figure(each.ratio)} × the band`]),
      ...history.epochs.map((each) => [each.since, `Epoch ${each.name} begins${each.reason ? `: ${each.reason}` : ""}; earlier runs are not compared`]),
      ...history.maintenance.map((each) => [each.begin, `Maintenance to ${iobands.minute(each.end)}${each.why ? `: ${each.why}` : ""}`]),
      ...history.missing.map((each) => [each.when, each.what || "Run failed"]),
      ...history.actions.map((each) => [each.when, each.says]),
    ].sort(([one], [other]) => other - one);
  }

  const eventList = (history) => iobands.list("events", "What happened", events(history).map(([time, text]) => () =>
    element("li", {}, element("span", { class: "when" }, iobands.day(time)), " ", text)), 12);

  // A fact with an empty name continues the fact before.
  const factsAs = (facts) => element("dl", {}, facts.map(([name, text]) => [name && element("dt", {}, name), element("dd", {}, text)]));
  const factList = (heading, facts) => element("div", { class: "card" }, element("h3", {}, heading), factsAs(facts));

  function about(history) {
    const { series } = history;
    const newest = history.cells.at(-1);
    const columns = ["stripe_count", "stripe_size", "transport_in_effect", "hints_in_effect", "fsync", "cache", "tool_version", "suite_version", "version"];
    const effect = newest ? columns.filter((name) => history.columns.includes(name) && newest(name) !== null)
      .map((name) => [nameOf(name), String(newest(name))]) : [];
    return section("about", "Details", element("div", { class: "facts" },
      factList("Judgement", history.facts),
      factList("Requested", Object.entries(series.fields).map(([name, value]) => [nameOf(name), value])),
      effect.length ? factList("In effect: read back in the newest run", effect) : null,
      history.technical.length ? element("details", { class: "card" }, element("summary", {}, "How it is judged"), factsAs(history.technical)) : null,
      history.moved.length ? element("div", { class: "card" }, element("h3", {}, "Moved at the same time"),
        element("ul", { class: "moved" }, history.moved.map((text) => element("li", {}, text)))) : null));
  }

  function runTable(history) {
    const details = element("details", {}, element("summary", {}, "Runs as a table"));
    details.addEventListener("toggle", () => {
      const columns = history.columns.filter((name) => history.cells.some((cells) => cells(name) !== history.cells[0](name)));
      const places = history.times.map((_, place) => place).reverse();
      const rows = places.map((place) => () => iobands.row([
        iobands.minute(history.times[place]), figure(history.values[place]), history.verdicts[place],
        ...columns.map((name) => history.cells[place](name) ?? "–")]));
      details.append(...iobands.table("Runs as a table", ["Time (UTC)", history.series.unit, "Verdict", ...columns.map(nameOf)], rows, "", TABLE_ROWS));
    }, { once: true });
    return details;
  }

  const isOf = (series) => (alert) => alert.series.includes(series.id);
  const alertLines = (series) => [
    ...iobands.site.alerts.filter(isOf(series)).map((alert) =>
      element("p", { class: "lead" }, iobands.alertText(alert, iobands.alertLink(alert)))),
    ...iobands.site.over.filter(isOf(series)).slice(0, 5).map((alert) =>
      element("p", { class: "note" }, "Past alert: ", iobands.alertLink(alert), `, ${iobands.day(alert.since)} to ${iobands.day(alert.ended)}`)),
  ];

  function neighbours(series) {
    const others = iobands.site.series.filter((each) => each.job === series.job && each.id !== series.id);
    const compared = iobands.neighbours(series);
    const oneDay = 86400;
    const month = 30 * oneDay;
    const span = (from, to) => `${series.id}@${iobands.isoDay(from)}..${iobands.isoDay(to)}`;
    const last = series.when;
    return element("p", {},
      others.length ? ["From the same jobs: ", others.flatMap((each, place) => [place ? ", " : "", iobands.link(each.id, each.variable)]), ". "] : "",
      "Compare with ", compared.flatMap(([field, ids]) => [
        element("a", { href: iobands.address("compare", { sets: [series.id, ...ids].slice(0, iobands.mostSets).join(",") }) }, `another ${nameOf(field)}`), ", "]),
      element("a", { href: iobands.address("compare", { sets: `${span(last - month + oneDay, last)},${span(last - 2 * month + oneDay, last - month)}` }) }, "the month before"), ".");
  }

  function covariateCharts(history, area) {
    const still = [];
    const found = [];
    for (const column of history.columns) {
      const values = history.cells.map((cells) => cells(column));
      const numbers = values.filter((value) => typeof value === "number");
      if (!numbers.length || NO_CHART.has(column)) continue;
      const [low, high] = iobands.quantiles(numbers, [0, 1]);
      if (low === high) {
        still.push(`${nameOf(column)} ${figure(low)}`);
        continue;
      }
      const holder = element("div", { class: "chart card", role: "img",
        "aria-label": `${nameOf(column)} on the same time axis: from ${figure(low)} to ${figure(high)}, newest ${figure(numbers.at(-1))}` });
      area.append(holder);
      found.push(iobands.chart(holder, { title: nameOf(column), height: 110, axis: false,
        lines: [{ times: history.times, values, colour: "median", points: numbers.length < 120 }] }));
    }
    return [found, still];
  }

  iobands.showSeries = async (main, settings, id) => {
    const series = iobands.byId.get(id);
    const left = series.left ? `: ${plural(series.left, "run")} to go` : "";
    const heading = element("h1", {}, `${series.label} `, tag(series.state, series.says + left, series.quiet));
    main.replaceChildren(heading, ...alertLines(series), element("p", { class: "note", role: "status", id: "loading" }, "Loading …"));
    await iobands.ready;
    const history = await iobands.history(id);
    const others = await Promise.all(iobands.site.series
      .filter((each) => each.job === series.job && each.id !== id && each.unit === series.unit)
      .map((each) => iobands.history(each.id)));
    if (iobands.place().place !== `series/${id}`) return;
    if (!history.times.length) {
      main.replaceChildren(heading, ...alertLines(series), element("p", { class: "card plain" }, "No run has given a sample yet."), eventList(history), about(history));
      return;
    }

    const says = element("p", { class: "note", "aria-live": "polite" });
    const panel = element("div", { class: "run card", role: "status" });
    const side = element("div", { class: "side card" });
    const plot = element("div", { class: "chart card plot", tabindex: "0", role: "group",
      "aria-label": `${series.label} against time. Left and right go from run to run, plus and minus zoom, 0 shows all.` });
    const below = element("div");
    const also = element("div", { class: "tools" });
    const time = element("div");
    const first = history.times[0];
    const newest = history.times.at(-1);
    // the axis ends with the newest run, or a run that failed not too long after it
    const missed = Math.min(history.missing.at(-1)?.when ?? newest, newest + Math.max(7 * 86400, 0.3 * (newest - first)));
    const last = Math.max(newest, missed);
    const margin = Math.max(1200, 0.03 * (last - first));
    const whole = [first - margin, last + margin];
    // during an open alert, the last 90 days are in view
    const isOpen = iobands.site.alerts.some((alert) => alert.series.includes(id));
    const begin = isOpen ? [Math.max(whole[0], newest - 90 * 86400), Math.min(whole[1], last + 3 * 86400)] : whole;
    // the address may name a run or a session, whose runs are later
    let selected = firstFrom(history.times, Date.parse(`${settings.at}Z`) / 1000);
    const shown = new Set((settings.with ?? "").split(" ").filter(Boolean));
    let plots = [];

    function select(place, keep = true) {
      selected = Math.max(0, Math.min(history.times.length - 1, place));
      panel.replaceChildren(...runText(history, selected));
      if (keep) iobands.keep({ at: iobands.isoMinute(history.times[selected]) });
      plots[0]?.redraw(false);
    }
    function changed(from, to) {
      const runs = iobands.between(history, from, to);
      says.textContent = iobands.glued(sentence(runs, series.unit));
      const { over, scales } = plots[0];
      side.replaceChildren(...distribution(runs, scales.y.max));
      const bars = side.querySelector("svg");
      if (!bars || side.offsetTop > plot.offsetTop) return; // on a phone, the histogram is below the chart
      bars.style.height = `${over.clientHeight}px`;
      bars.style.marginTop = `${over.getBoundingClientRect().top - bars.getBoundingClientRect().top}px`;
    }
    function draw() {
      plots.forEach((each) => each.destroy());
      plot.replaceChildren();
      below.replaceChildren();
      const together = others.filter((other) => shown.has(other.series.variable));
      const main = iobands.chart(plot, {
        title: `${series.variable} in ${series.unit}`, height: iobands.onAPhone() ? 260 : 340,
        ceiling: Math.max(0, ...history.bands.map((band) => band.upper_quartile)),
        lines: [{ times: history.times, values: history.values, colour: "line", width: 1 },
          ...together.map((other) => ({ times: other.times, values: other.values, colour: "other", width: 1.5 }))],
        under: (u) => iobands.drawContext(u, history),
        draw: (u) => {
          iobands.drawSamples(u, history);
          iobands.drawIn(u, (context, x, y) => {
            context.strokeStyle = getComputedStyle(plot).color;
            context.lineWidth = 2 * devicePixelRatio;
            context.beginPath();
            context.arc(x(history.times[selected]), y(history.values[selected]), 7 * devicePixelRatio, 0, 7);
            context.stroke();
          });
        },
      });
      const [charts, still] = covariateCharts(history, below);
      if (still.length) below.append(element("p", { class: "note" }, `The same in all runs: ${still.join(", ")}.`));
      plots = [main, ...charts];
      plots.forEach((each) => each.over.addEventListener("mousemove", (event) => {
        const at = each.posToVal(event.clientX - each.over.getBoundingClientRect().left, "x");
        select(nearest(history.times, at), false);
      }));
      main.over.addEventListener("click", () => select(selected));
      time.replaceChildren(iobands.together(plots, whole, { changed, first: begin, keys, at: () => history.times[selected] }));
    }
    function go(place) {
      select(place);
      const at = history.times[selected];
      const { min, max } = plots[0].scales.x;
      const half = (max - min) / 2;
      if (at < min || at > max) plots[0].setScale("x", { min: at - half, max: at + half });
    }
    const keys = { ArrowLeft: () => go(selected - 1), ArrowRight: () => go(selected + 1), Home: () => go(0), End: () => go(Infinity) };
    others.forEach((other) => {
      const name = other.series.variable;
      const box = element("input", { type: "checkbox", id: `with-${name}`, checked: shown.has(name), onchange: () => {
        if (box.checked) shown.add(name);
        else shown.delete(name);
        iobands.keep({ with: [...shown].join(" ") });
        draw();
      } });
      also.append(element("label", {}, box, ` with ${name} from the same jobs`));
    });
    main.replaceChildren(...[
      heading, ...alertLines(series), neighbours(series), time, also,
      element("div", { class: "with-side" },
        element("div", {}, plot, says, legend(), panel, section("beside", "On the same time axis", below)), side),
      eventList(history), about(history), runTable(history),
    ].filter(Boolean));
    draw();
    select(selected, false);
    iobands.leave = iobands.redraw(draw);
  };

  function legend() {
    const swatch = (style, text) => element("span", {}, element("i", { class: `swatch ${style}`, "aria-hidden": "true" }), ` ${text} `);
    return element("p", { class: "note key" },
      ["above", "within", "below", "collapsed", "no band"].map((name) => iobands.key(name, iobands.marks[name], name)),
      swatch("band-swatch", "lower to upper quartile"), swatch("median-swatch", "median"), swatch("floor-swatch", "floor, below which a healthy run hardly ever lies"),
      swatch("baseline-swatch", "baseline"), swatch("changed-swatch", "change, darker where it may have begun"),
      swatch("raised-swatch", "alert raised"), swatch("epoch-swatch", "epoch begins"),
      swatch("maintenance", "maintenance"), swatch("incident", "incident"), iobands.key("run failed", "!", "run failed"));
  }
})();
