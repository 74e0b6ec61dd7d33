// Elements and texts. Text from perflogs and logs never becomes markup.
"use strict";

// A text in which no line breaks between number and unit, day and month, ratio and interval, or at its dash.
iobands.glued = (text) => text.replace(/(\d) (?=[×%]|[KMGT]iB|1\/s|[A-Z][a-z]{2}\b)|(×) (?=\()/g, "$1$2\u00a0")
  .replace(/(\([\d.]+–)(?=\d)/g, "$1\u2060");

iobands.element = function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(`http://www.w3.org/${["svg", "rect"].includes(name) ? "2000/svg" : "1999/xhtml"}`, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  const isCommand = name === "code" || name === "pre"; // without special blanks, as it may be pasted
  made.append(...children.flat(Infinity).filter((child) => child || child === 0)
    .map((child) => (typeof child === "string" && !isCommand ? iobands.glued(child) : child)));
  return made;
};

(() => {
  const { element } = iobands;

  // A mark for each word, so that no meaning depends on colour alone.
  iobands.marks = {
    above: "▲", within: "●", below: "▼", collapsed: "✖", "no band": "○",
    healthy: "✔", slow: "✖", "not used": "?", unknown: "?", improved: "▲", watch: "▼", degraded: "✖", "mode lost": "✖", sliding: "◢", unstable: "↕", incident: "✖", "no data": "?",
    unfit: "?", failed: "✖", flaky: "✖", calibrating: "…", OK: "✔", WARNING: "▼", CRITICAL: "✖", UNKNOWN: "?", CALIBRATING: "…",
  };

  iobands.tag = (word, text = word, known = false) =>
    element("span", { class: `tag ${known ? "known" : word.replace(" ", "-").toLowerCase()}` },
      element("span", { "aria-hidden": "true" }, `${iobands.marks[word] ?? "●"} `), text);

  const THREE_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, useGrouping: false });
  iobands.figure = (value) => {
    if (Math.abs(value) >= 100 && Math.abs(value) < 1e4) return value.toFixed(0);
    return THREE_DIGITS.format(value);
  };

  const NAMES = {
    jobid: "job", job_nodelist: "nodes", environ: "environment", hints: "hint preset", gib: "volume in GiB",
    hints_in_effect: "hints in effect", stripe_count_asked: "stripe count", stripe_size: "stripe size in bytes",
    open_close_percent: "time in opens and closes in %", interval_days: "interval in days", client_written_gib: "written by the clients in GiB",
    client_read_gib: "read by the clients in GiB", version: "ReFrame", suite_version: "iobands",
    busiest_target: "files on the busiest target (× its round-robin share)", free_spread_percent: "difference in free space between targets in %",
    slowest_target: "slowest target (× the median)", slowest_node: "slowest node (× the median)",
  };
  // The name of a column for readers.
  iobands.nameOf = (column) => NAMES[column] ?? column.replace(/_percent$/, " in %").replaceAll("_", " ");

  iobands.plural = (count, noun) =>
    `${count} ${count === 1 || noun.endsWith("s") ? noun : `${noun}s`}`;

  const iso = (seconds) => new Date(1000 * seconds).toISOString();
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const A_YEAR = 300 * 86400; // days further away are shown with their year

  // The day, and the minute, as in addresses.
  iobands.isoDay = (seconds) => iso(seconds).slice(0, 10);
  iobands.isoMinute = (seconds) => iso(seconds).slice(0, 16);
  // The day for readers, such as "4 Aug" or "4 Aug 2017", and the minute; both in UTC.
  iobands.shortDay = (seconds) => `${Number(iso(seconds).slice(8, 10))} ${MONTHS[iso(seconds).slice(5, 7) - 1]}`;
  iobands.day = (seconds) => iobands.shortDay(seconds)
    + (Math.abs(iobands.site.made - seconds) < A_YEAR ? "" : ` ${iso(seconds).slice(0, 4)}`);
  iobands.minute = (seconds) => `${iobands.day(seconds)} ${iso(seconds).slice(11, 16)}`;

  // A duration in the largest unit that it has at least two of.
  iobands.duration = (seconds) => {
    const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
    const [size, name] = units.find(([each]) => seconds >= 2 * each) ?? units[3];
    return iobands.plural(Math.max(0, Math.round(seconds / size)), name);
  };
  // An age; from two days on in whole days, as in the digest and in alerts.
  iobands.age = (seconds) => iobands.duration(seconds < 2 * 86400 ? seconds : seconds - (seconds % 86400));
  // How long ago; clocks that differ by less than a quarter of an hour count as one.
  iobands.ago = (seconds) => seconds < -900 ? "dated in the future" : seconds < 30 ? "just now" : `${iobands.age(seconds)} ago`;

  // An entry of a legend: a cell as it is drawn, and its meaning.
  iobands.key = (kind, mark, text) =>
    element("span", {}, element("i", { class: `cell ${kind.replace(" ", "-")}`, "aria-hidden": "true" }, mark), ` ${text} `);

  iobands.row = (cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell)));
  // A row that becomes a card on a phone.
  iobands.cardRow = (headings, [first, ...cells]) => element("tr", {}, element("th", { scope: "row" }, first),
    cells.map((cell, place) => element("td", { "data-label": headings[place + 1] }, cell)));

  iobands.link = (id, text) => element("a", { href: iobands.address(`series/${id}`) }, text);

  // A link to the page of an alert; for a past alert without a page, the command that explains it.
  iobands.alertLink = ({ page, number, subject }) => (page ? element("a", { href: page }, subject)
    : number ? [element("strong", {}, subject), " ", element("code", {}, `iobands explain ${number}`)] : element("strong", {}, subject));

  // A block of a document, as defined in views/writing.py.
  iobands.block = ([kind, block]) => ({
    Heading: () => element(`h${block.level}`, {}, block.text),
    Paragraph: () => element("p", { class: "note" }, block.text),
    Bullets: () => element("ul", { class: "card bullets" }, block.lines.map((line) => element("li", {}, line))),
    Commands: () => element("pre", { class: "card plain", tabindex: "0" }, block.lines.join("\n")),
    Table: () => iobands.table("Table of rates", block.headings, block.rows.map((row) => () => iobands.cardRow(block.headings, row)), "cards"),
  })[kind]();

  iobands.section = (id, heading, ...children) =>
    element("section", { id, "aria-labelledby": `${id}-heading` },
      element("h2", { id: `${id}-heading` }, heading), ...children);

  iobands.onAPhone = () => matchMedia("(max-width: 46rem)").matches;

  // A table in a box that scrolls if it is wider than the page, with `most` rows at first, and a
  // button for the others. `rows` are functions that make them.
  iobands.table = (label, headings, rows, kind = "", most = rows.length) => {
    const [body, button] = iobands.more(rows, most, element("tbody"));
    const head = element("tr", {}, headings.map((each) => element("th", { scope: "col" }, each)));
    return [element("div", { class: `card scroll ${kind}`, tabindex: "0", role: "region", "aria-label": label },
      element("table", {}, element("thead", {}, head), body)), button];
  };

  // A container with `most` items at first, and a button for the others; `items` make them.
  iobands.more = (items, most, container) => {
    const rest = [...items];
    const button = element("button", { type: "button" });
    const show = (count) => {
      container.append(...rest.splice(0, count).map((make) => make()));
      button.textContent = `${rest.length} more`;
      button.hidden = !rest.length;
    };
    button.onclick = () => show(Math.max(most, 200));
    show(most);
    return [container, button];
  };

  // A section with a list, as `more` makes it, or null without items.
  iobands.list = (id, heading, items, most, note = "") => (items.length
    ? iobands.section(id, heading, note && element("p", { class: "note" }, note), iobands.more(items, most, element("ul", { class: "card" })))
    : null);
})();
