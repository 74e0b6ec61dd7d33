// Receives the data: each data file is a script that calls one of these, as a page that was opened
// from a disk may load scripts and nothing else.
"use strict";

const iobands = {
  site: null, // what data/site.js holds
  byId: new Map(), // series by their id
};

(() => {
  const received = new Map(); // what a script has handed over, by its name
  const loads = new Map(); // promises of it, by the same name

  iobands.receive = (name, data) => {
    received.set(name, data);
    if (name !== "site") return;
    iobands.site = data;
    data.series.forEach((series) => iobands.byId.set(series.id, series));
    iobands.start();
  };

  // The data of a file, of which all but the site's are packed.
  function load(name) {
    if (!loads.has(name)) {
      loads.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.onload = () => resolve(unpacked(received.get(name)));
        script.onerror = () => {
          loads.delete(name);
          reject(new Error(`data/${name}.js cannot be loaded; is the copy of the dashboard whole?`));
        };
        script.src = `data/${name}.js`;
        document.head.append(script);
      }));
    }
    return loads.get(name);
  }

  async function unpacked(packed) {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  // A column is its only value, or a value a run.
  const cell = (column, run) => (Array.isArray(column) ? column[run] : column ?? null);

  function addTables(runs, tables, variable) {
    for (const table of tables) {
      if (table.values[variable] === undefined) continue;
      const values = table.values[variable];
      let time = 0;
      table.times.forEach((step, place) => {
        time += step;
        runs.times.push(time);
        runs.values.push(values[place]);
        runs.cells.push((name) => cell(table.columns[name], place));
      });
      Object.keys(table.columns).forEach((name) => runs.columns.add(name));
    }
  }

  // The runs of a series: times, values, and a function of each run that returns a column of it;
  // with what else is known of the series.
  const histories = new Map();
  iobands.history = function history(id) {
    const series = iobands.byId.get(id);
    if (!histories.has(id)) {
      histories.set(id, (async () => {
        const about = await load(`${series.job}/series`);
        const parts = await Promise.all(about.parts.map((part) => load(`${series.job}/${part}`)));
        const runs = { times: [], values: [], cells: [], columns: new Set() };
        parts.forEach((tables) => addTables(runs, tables, series.variable));
        runs.columns = about.columns.filter((name) => runs.columns.has(name));
        return { series, ...runs, ...about.series.find((each) => each.id === id) };
      })());
    }
    return histories.get(id);
  };
})();
