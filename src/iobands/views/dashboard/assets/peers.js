// Targets and nodes: a heat map of their speeds relative to the median, and a table.
"use strict";

(() => {
  const { element, section, cardRow, tag } = iobands;
  const MOST_ROWS = 24;
  // Classes of speed: from which percentage of the median, name, mark and colour.
  const CLASSES = [
    [110, "faster", "▲", "above"], [90, "as fast as the others", "●", "within"],
    [75, "slower", "▼", "below"], [0, "much slower", "✖", "collapsed"],
  ];

  const classOf = (percent) => CLASSES.find(([least]) => percent >= least);

  function cell(percent, time) {
    if (percent === null) return element("td");
    const [, says, mark, colour] = classOf(percent);
    return element("td", {}, element("span", {
      class: `cell ${colour}`, title: `${iobands.minute(time)}: ${percent} % of the median (${says})`,
    }, element("span", { "aria-hidden": "true" }, mark), element("span", { class: "unseen" }, `${percent} %`)));
  }

  function legend({ noun }) {
    return element("p", { class: "note key" }, element("span", {}, `Speed in a session relative to the median ${noun}:`),
      CLASSES.map(([least, says, mark, colour]) => iobands.key(colour, mark, `${says}${least ? ` (from ${least} %)` : ""}`)));
  }

  function heat({ name, noun, sessions, rows }) {
    const first = iobands.firstSession(sessions);
    const times = sessions.slice(first);
    const makers = rows.map((each) => () => element("tr", {},
      element("th", { scope: "row" }, each.state === "healthy" ? each.name : [each.name, " ", tag(each.state)]),
      times.map((time, place) => cell(each.percent[first + place], time))));
    return iobands.heatTable(`Heat map: ${name}`, noun, times, makers, MOST_ROWS);
  }

  function table({ name, noun, rows, meanings }) {
    const variables = [...new Set(rows.flatMap((each) => Object.keys(each.speeds)))].sort().reverse();
    const headings = [noun[0].toUpperCase() + noun.slice(1), ...variables, "Runs", "State", "Since"];
    const makers = rows.map((each) => () => cardRow(headings, [iobands.onAPhone() ? `${noun} ${each.name}` : each.name, ...variables.map((name) => each.speeds[name] ?? "–"),
      each.runs, tag(each.state), each.since === null ? "–" : iobands.day(each.since)]));
    return element("details", {}, element("summary", {}, "Table"),
      iobands.table(`Table: ${name}`, headings, makers, "cards", MOST_ROWS),
      meanings.map((text) => element("p", { class: "note" }, text)));
  }

  function sentence({ noun, rows, count }) {
    if (!known({ rows })) return element("p", {}, `No run used three or more ${noun}s at once, so they cannot be compared.`);
    const slow = rows.filter((each) => each.state === "slow");
    if (!slow.length) return element("p", {}, `None of ${iobands.plural(count, noun)} is slower than the others.`);
    const says = slow.map((each) => `${noun} ${each.name} since ${iobands.day(each.since)}`).join(", ");
    return element("p", {}, `${slow.length} of ${iobands.plural(count, noun)} ${slow.length === 1 ? "is" : "are"} slower than the others: ${says}.`);
  }

  const known = (place) => place.rows.some((each) => each.state !== "unknown");
  const isSlow = (place) => place.rows.some((each) => each.state === "slow");

  // The places with a slow target or node, or the others, whose heat maps are folded.
  iobands.peerMaps = (places, slow) => places.filter((place) => place.sessions.length && isSlow(place) === slow)
    .map((place) => section(`places-${places.indexOf(place)}`, place.name[0].toUpperCase() + place.name.slice(1),
      sentence(place), slow ? [heat(place), legend(place), table(place)]
        : known(place) && [element("details", {}, element("summary", {}, "Heat map"), heat(place), legend(place)), table(place)]));
})();
