// The first line: the state of the site and its age by the reader's clock.
"use strict";

(() => {
  const { element } = iobands;
  const nameOf = (word) => iobands.site.names[word] ?? word; // a public dashboard has other words

  // The state and its text; without a run for two intervals, the state is unknown.
  iobands.judgement = (site, now) => {
    if (site.newest === null) return { word: "UNKNOWN", text: "no run yet" };
    const age = now - site.newest;
    const usual = `one is expected every ${iobands.duration(site.interval)}`;
    if (age > 2 * site.interval) {
      // of a site that was unknown already, the headline is mostly that there are no data
      const last = site.word === "UNKNOWN" ? "" : `; last known: ${nameOf(site.word)}, ${site.headline || site.counts}`;
      return { word: "UNKNOWN", text: `no run for ${iobands.age(age)}, and ${usual}${last}` };
    }
    // A site on which nothing can be judged is not OK.
    const young = site.word === "OK" && site.series.every((series) => series.state === "calibrating");
    const quiet = site.word === "OK" && !young ? "nothing needs attention" : site.counts.replace(/^calibrating: /, "");
    return { word: young ? "CALIBRATING" : site.word, text: site.headline || quiet };
  };

  iobands.showState = () => {
    const { site } = iobands;
    const now = site.past ? site.made : Date.now() / 1000;
    const { word, text } = iobands.judgement(site, now);
    const systems = [...new Set(site.series.map((series) => series.fields.system))].join(", ");
    const name = `I/O performance${systems ? ` of ${systems}` : ""}`;
    document.title = [site.made_up && "Made up", iobands.page, nameOf(word), name].filter(Boolean).join(" · ");
    document.getElementById("home").textContent = name;
    const when = site.past ? "as it was known then" : "when this page was made";
    const session = site.session
      ? `newest session ${iobands.ago(now - site.session.began)}: ${site.session.how}; ` : "";
    document.getElementById("state").replaceChildren(
      ...(site.made_up ? [element("p", { class: "banner" },
        element("strong", {}, "A made-up site. "), "Nothing on these pages was measured.")] : []),
      element("p", { class: "summary" }, iobands.tag(word, nameOf(word)), " ", text),
      element("p", { class: "note" }, site.public || site.counts.endsWith(text) ? "" : `${site.counts}; `, site.newest === null ? "" : `newest run ${iobands.ago(now - site.newest)}; `,
        `${session}${iobands.minute(site.made)} UTC, ${when}; all times are UTC`),
    );
  };
})();
