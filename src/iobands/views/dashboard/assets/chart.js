// Charts against time, drawn by uPlot; the charts of a page share style, time axis, zoom and keys.
"use strict";

(() => {
  const { element } = iobands;
  const MARKS = { above: "up", within: "dot", below: "down", collapsed: "cross", "no band": "ring" };
  const DENSE = 400; // marks are smaller with more runs than this in view
  const DAY = 86400;
  const SILENCE = 7 * DAY; // the shortest pause that leaves a gap in a line
  const YEAR = 365 * DAY; // in uPlot's steps, in which a month has 30 days
  const MARGIN = 0.03; // free space behind the newest run, as a share of the view
  const STEP = 0.25; // of the view, by which a step pans
  const CLOSER = 0.75; // of the view, which remains after a step of zoom

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function drawMark(context, kind, x, y, size) {
    context.beginPath();
    if (kind === "up" || kind === "down") {
      const tip = kind === "up" ? -size : size;
      context.moveTo(x, y + tip);
      context.lineTo(x - size, y - tip * 0.8);
      context.lineTo(x + size, y - tip * 0.8);
      context.fill();
    } else if (kind === "cross") {
      context.moveTo(x - size, y - size);
      context.lineTo(x + size, y + size);
      context.moveTo(x + size, y - size);
      context.lineTo(x - size, y + size);
      context.stroke();
    } else {
      context.arc(x, y, size * 0.75, 0, 7);
      if (kind === "ring") context.stroke();
      else context.fill();
    }
  }

  // Draws in units of the plot, clipped to its frame: `draw` gets functions to canvas x and y.
  iobands.drawIn = (u, draw) => {
    const { ctx: context, bbox } = u;
    context.save();
    context.beginPath();
    context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    context.clip();
    draw(context, (time) => u.valToPos(time, "x", true), (value) => u.valToPos(value, "y", true), bbox);
    context.restore();
  };

  // The samples, with a mark for each verdict.
  iobands.drawSamples = (u, history) => iobands.drawIn(u, (context, x, y, bbox) => {
    const { min, max } = u.scales.x;
    const inView = history.times.reduce((count, time) => count + (time >= min && time <= max), 0);
    const size = (inView > DENSE ? 2 : 4) * devicePixelRatio;
    const colours = Object.fromEntries(Object.keys(MARKS).map((name) =>
      [name, colour(name === "no band" ? "soft" : `${name}-mark`)]));
    const asked = new Set(history.asked);
    context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.lineWidth = 4 * devicePixelRatio;
    history.labels.forEach(([text, time, name]) => {
      const left = x(time) < bbox.left + 0.85 * bbox.width;
      const at = [text, x(time) + (left ? 6 : -6) * devicePixelRatio, bbox.top + 3 * devicePixelRatio];
      context.textAlign = left ? "left" : "right";
      context.strokeStyle = colour("paper"); // an outline that keeps lines off the text
      context.fillStyle = colour(name);
      context.strokeText(...at);
      context.fillText(...at);
    });
    context.lineWidth = 1.5 * devicePixelRatio;
    history.times.forEach((time, place) => {
      if (time < min || time > max) return;
      const verdict = history.verdicts[place];
      context.fillStyle = context.strokeStyle = colours[verdict];
      drawMark(context, MARKS[verdict], x(time), y(history.values[place]), asked.has(time) ? 0.6 * size : size);
    });
  });

  // Bands, epochs, changes, incidents and missing runs of a series.
  iobands.drawContext = (u, history) => iobands.drawIn(u, (context, x, y, bbox) => {
    const bottom = bbox.top + bbox.height;
    const end = u.scales.x.max;
    const line = (left, top, right, below, name, dash) => {
      context.strokeStyle = colour(name);
      context.lineWidth = 1.2 * devicePixelRatio;
      context.setLineDash(dash.map((each) => each * devicePixelRatio));
      context.beginPath();
      context.moveTo(left, top);
      context.lineTo(right, below);
      context.stroke();
      context.setLineDash([]);
    };
    const level = (from, to, value, name, dash) => line(x(from), y(value), x(to), y(value), name, dash);
    const shade = (from, to, name) => {
      context.fillStyle = colour(name);
      context.fillRect(x(from), bbox.top, Math.max(x(to) - x(from), devicePixelRatio), bbox.height);
    };
    const upright = (time, name, dash, text) => {
      line(x(time), bbox.top, x(time), bottom, name, dash);
      labels.push([text, time, name]);
    };
    const labels = [];
    history.labels = labels; // drawSamples writes them, over the grid
    history.changes.forEach((change) => {
      shade(change.since, change.ended ?? end, "changed");
      shade(change.since_low, change.since_high, "begin");
    });
    history.maintenance.forEach((each) => shade(each.begin, each.end, "unknown-wash"));
    history.incidents.forEach((each) => shade(each.since, each.until, "bad-wash"));
    history.segments.forEach(([begin, place], number) => {
      if (place < 0) return;
      const band = history.bands[place];
      const until = history.segments[number + 1]?.[0] ?? end;
      context.fillStyle = colour("band");
      context.fillRect(x(begin), y(band.upper_quartile), x(until) - x(begin), y(band.lower_quartile) - y(band.upper_quartile));
      level(begin, until, band.median, "median", []);
      level(begin, until, band.floor, "floor", [6, 4]);
    });
    if (history.baseline) level(history.baseline.since, end, history.baseline.level, "baseline", [2, 3]);
    history.epochs.forEach((epoch) => upright(epoch.since, "soft", [1, 3], epoch.name));
    history.changes.forEach((change) => upright(change.raised, "low", [], change.label));
    context.fillStyle = colour("bad");
    context.font = `bold ${14 * devicePixelRatio}px system-ui, sans-serif`;
    context.textAlign = "center";
    history.missing.forEach(({ when }) => context.fillText("!", x(when), bottom - 3 * devicePixelRatio));
  });

  // The ticks of the time axis; uPlot's are wrong when the reader's time zone changes its clocks.
  function ticksOf(u, axis, min, max, step) {
    const months = step >= YEAR ? (12 * step) / YEAR : step / (30 * DAY);
    const start = Math.ceil(min / Math.min(step, DAY)) * Math.min(step, DAY);
    const tick = months < 1 ? (count) => start + count * step : (count) => Date.UTC(1970, count * months) / 1000;
    const found = [];
    for (let count = 0; tick(count) <= max; count += 1) if (tick(count) >= min) found.push(tick(count));
    return found;
  }

  // The labels of the time axis: the parts of a date that its ticks need.
  const dates = (u, ticks, _axis, _space, step) => ticks.map((tick, place) => {
    const [iso, hour] = iobands.isoMinute(tick).split("T");
    const date = iobands.shortDay(tick);
    if (step < DAY) return place && hour !== "00:00" ? hour : `${date}\n${hour}`;
    const isNew = !place || iobands.isoDay(ticks[place - 1]).slice(0, 4) !== iso.slice(0, 4);
    const text = step >= 28 * DAY ? date.split(" ")[1] : date;
    return isNew ? `${text}\n${iso.slice(0, 4)}` : text;
  });

  // The times and values of a line, with a gap in each long pause, about which nothing is known.
  function withSilences({ times, values }) {
    const [usual] = iobands.quantiles(times.slice(1).map((time, place) => time - times[place]), [0.5]);
    const points = times.flatMap((time, place) => [
      ...(time - times[place - 1] > Math.max(SILENCE, 5 * usual) ? [[time - 1, null]] : []),
      [time, values[place] ?? undefined], // undefined makes no gap
    ]);
    return [points.map(([time]) => time), points.map(([, value]) => value)];
  }

  // A chart in `container`. `lines` are { times, values, colour, width, dash, points }; the axis of
  // values reaches at least `ceiling`; `draw` and `under` draw over and under the lines.
  iobands.chart = (container, { title, lines, height, ceiling = 0, draw, under, axis }) => {
    const data = uPlot.join(lines.map(withSilences), lines.map(() => [0, 2])); // keep gaps also where other lines have times
    const axes = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 } };
    const plot = new uPlot({
      width: (container.clientWidth || 600) - 16, // without its padding
      height, legend: { show: false }, padding: [null, 24, null, null],
      scales: {
        x: { time: true, range: (u, min, max) => [min, max] },
        y: { range: (u, min, max) => [0, 1.1 * Math.max(max ?? 0, ceiling) || 1] },
      },
      series: [{}, ...lines.map((each) => ({
        stroke: colour(each.colour), width: each.width ?? 1, dash: each.dash,
        points: { show: Boolean(each.points), size: 4, fill: colour(each.colour) },
      }))],
      // uPlot draws no axis after a hidden one
      axes: [{ ...axes, splits: ticksOf, ...(axis === false ? { size: 8, values: (u, ticks) => ticks.map(() => "") } : { values: dates }) }, { ...axes, size: 56, values: (u, ticks) => ticks.map((each) => (each < 1e4 ? iobands.figure(each) : `${each / 1000}k`)) }],
      cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: true }, points: { show: false } },
      hooks: { drawAxes: under ? [under] : [], draw: draw ? [draw] : [] },
    }, data, container);
    container.prepend(element("p", { class: "title" }, title));
    return plot;
  };

  // Joins charts to one time axis within `whole`. The address keeps the times in view, `first` by
  // default, and `changed` is called with them. The first chart takes the keys + - 0 and `keys`.
  // Zoom is centred at the time of `at` while that is in view. Returns the buttons.
  iobands.together = (plots, whole, { changed = () => {}, first = whole, keys = {}, at = () => NaN } = {}) => {
    let busy = false;
    const isPlain = first[0] <= whole[0] && first[1] >= whole[1]; // otherwise the address must name the whole range, too
    const set = (min, max) => {
      const wide = Math.max(max - min, 60);
      const from = Math.max(whole[0], Math.min(min, whole[1] - wide));
      const to = Math.min(whole[1], from + wide);
      busy = true;
      plots.forEach((plot) => plot.batch(() => plot.setScale("x", { min: from, max: to })));
      busy = false;
      const text = (seconds) => (isPlain && from <= whole[0] && to >= whole[1] ? "" : iobands.isoMinute(seconds));
      const { settings } = iobands.place();
      if (text(from) !== (settings.from ?? "") || text(to) !== (settings.to ?? "")) iobands.keep({ from: text(from), to: text(to) });
      queueMicrotask(() => changed(from, to)); // after uPlot has set its sizes
    };
    plots.forEach((plot) => {
      plot.hooks.setScale = [(u, key) => {
        const { min, max } = u.scales.x;
        if (key === "x" && !busy && min !== null) set(min, max);
      }];
      // uPlot's own double click would show another range as the whole
      plot.over.addEventListener("dblclick", () => setTimeout(() => set(...whole)));
      plot.over.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return; // the wheel alone scrolls the page
        event.preventDefault();
        zoom(event.deltaY < 0 ? CLOSER : 1 / CLOSER, plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x"));
      }, { passive: false });
    });
    const zoom = (factor, wanted = at()) => {
      const { min, max } = plots[0].scales.x;
      const still = wanted >= min && wanted <= max ? wanted : (min + max) / 2;
      set(still - (still - min) * factor, still + (max - still) * factor);
    };
    const pan = (share) => {
      const { min, max } = plots[0].scales.x;
      set(min + share * (max - min), max + share * (max - min));
    };
    const last = (days) => { // not up to `whole`, whose margin is months long for ten years
      const newest = plots[0].data[0].at(-1);
      set(newest - days * DAY, newest + days * DAY * MARGIN);
    };
    const acts = { "+": () => zoom(CLOSER), "-": () => zoom(1 / CLOSER), 0: () => set(...whole), ...keys };
    plots[0].root.parentElement.onkeydown = (event) => {
      const act = acts[event.key];
      if (!act || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      act();
    };
    const button = (text, says, act) => element("button", { type: "button", "aria-label": says, title: says, onclick: act }, text);
    const tools = element("div", { class: "tools", role: "group", "aria-label": "Time in view" },
      button("◀", "Earlier", () => pan(-STEP)), button("▶", "Later", () => pan(STEP)),
      button("+", "Zoom in", acts["+"]), button("−", "Zoom out", acts["-"]),
      button("30 days", "The last 30 days", () => last(30)), button("90 days", "The last 90 days", () => last(90)),
      button("1 year", "The last year", () => last(365)), button("all", "All runs", acts[0]));
    const given = ["from", "to"].map((name) => Date.parse(`${iobands.place().settings[name]}Z`) / 1000);
    set(...(given.every(Number.isFinite) && given[0] < given[1] ? given : first));
    return tools;
  };

  // Redraws when colours or width change; returns a function that stops this.
  iobands.redraw = (draw) => {
    let timer;
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(draw, 150);
    };
    const paper = (on) => () => {
      document.documentElement.classList.toggle("paper", on);
      draw();
    };
    const ended = new AbortController();
    const on = (name, act, of = window) => of.addEventListener(name, act, { signal: ended.signal });
    on("resize", later);
    on("beforeprint", paper(true));
    on("afterprint", paper(false));
    on("change", draw, matchMedia("(prefers-color-scheme: dark)"));
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  };
})();
