// Elements and texts. Whatever comes from a log becomes text, never markup.
"use strict";

iobands.element = function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

(() => {
  const { element } = iobands;

  // A mark for each word, so that none is known by its colour alone.
  iobands.marks = {
    above: "▲", within: "●", below: "▼", collapsed: "✖", "no band": "○",
    healthy: "✔", slow: "✖", "not used": "?", improved: "▲", watch: "▼", degraded: "✖", incident: "✖", "no data": "?",
    unfit: "?", failed: "✖", calibrating: "…", OK: "✔", WARNING: "▼", CRITICAL: "✖", UNKNOWN: "?", CALIBRATING: "…",
  };

  iobands.tag = (word, text = word, known = false) =>
    element("span", { class: `tag ${known ? "known" : word.replace(" ", "-").toLowerCase()}` },
      element("span", { "aria-hidden": "true" }, `${iobands.marks[word] ?? "●"} `), text);

  iobands.figure = (value) => {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) >= 100) return value.toFixed(0);
    return String(Number(value.toPrecision(3)));
  };

  iobands.change = (ratio) => {
    const percent = Math.round(100 * (ratio - 1));
    return `${percent < 0 ? "−" : "+"}${Math.abs(percent)} %`;
  };

  iobands.plural = (count, noun) =>
    `${count} ${count === 1 || noun.endsWith("s") ? noun : `${noun}s`.replace(/([^aeiou])ys$/, "$1ies")}`;

  const date = (seconds) => new Date(1000 * seconds);
  iobands.day = (seconds) => date(seconds).toISOString().slice(0, 10);
  iobands.minute = (seconds) => date(seconds).toISOString().slice(0, 16).replace("T", " ");

  // How long, in the largest unit that leaves at least two.
  iobands.duration = (seconds) => {
    const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
    const [size, name] = units.find(([each]) => seconds >= 2 * each) ?? units[3];
    return iobands.plural(Math.max(0, Math.round(seconds / size)), name);
  };

  iobands.row = (cells, kind = "td") =>
    element("tr", {}, cells.map((cell) => element(kind, kind === "th" ? { scope: "col" } : {}, cell)));

  iobands.link = (id, text) => element("a", { href: iobands.address(`series/${id}`) }, text);

  iobands.section = (id, heading, ...children) =>
    element("section", { id, "aria-labelledby": `${id}-heading` },
      element("h2", { id: `${id}-heading` }, heading), ...children);

  iobands.onAPhone = () => matchMedia("(max-width: 46rem)").matches;

  // A list that shows its first items, and the others when asked.
  iobands.more = (items, most, container) => {
    container.append(...items.slice(0, most).map((make) => make()));
    if (items.length <= most) return container;
    const button = element("button", { type: "button", onclick: () => {
      const next = items.splice(most, Math.max(most, 200));
      container.append(...next.map((make) => make()));
      button.textContent = `${items.length - most} more`;
      button.hidden = items.length <= most;
    } }, `${items.length - most} more`);
    return [container, button];
  };
})();
