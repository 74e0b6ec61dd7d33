// Loads the data. Each data file is a script that calls iobands.receive, as a page opened from a
// disk may load only scripts.
"use strict";

const iobands = {
  site: null, // what data/site.js holds
  byId: new Map(), // series by their id
};

(() => {
  const received = new Map(); // data from the scripts, by name: of job files still packed
  const loads = {}; // promises of unpacked data, by name

  iobands.receive = (name, data) => {
    received.set(name, data);
    if (name !== "site") return;
    iobands.site = data;
    data.series.forEach((series) => iobands.byId.set(series.id, series));
    iobands.start();
  };

  // Loads and unpacks a data file; only the site's is not packed, and not loaded here.
  function load(name) {
    loads[name] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = script.onerror = () => {
        if (received.has(name)) {
          resolve(unpacked(received.get(name)));
          return;
        }
        delete loads[name];
        reject(new Error(`data/${name}.js is missing or damaged; is the copy of the dashboard complete?`));
      };
      script.src = `data/${name}.js`;
      document.head.append(script);
    });
    return loads[name];
  }

  async function unpacked(packed) {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  // The cell of a run; a column is its only value, a value per run, or values and a mark per run.
  const FIRST = 35;
  function cell(column, run) {
    if (Array.isArray(column)) return column[run];
    return column?.of ? column.of[column.at.charCodeAt(run) - FIRST] : column ?? null;
  }

  function addTables(runs, tables, variable) {
    for (const table of tables) {
      if (table.values[variable] === undefined) continue;
      let time = 0;
      table.times.forEach((step, place) => {
        time += step;
        runs.times.push(time);
        runs.values.push(cell(table.values[variable], place));
        runs.cells.push((name) => cell(table.columns[name], place));
      });
      Object.keys(table.columns).forEach((name) => runs.columns.add(name));
    }
  }

  // The times and values of the runs from one time to another.
  iobands.between = ({ times, values }, from, to) => {
    const isInside = (_, place) => times[place] >= from && times[place] <= to;
    return { times: times.filter(isInside), values: values.filter(isInside) };
  };

  // The history of a series: times, values and verdicts of its runs, `cells` with a function for
  // each run that returns the value of a column, and the details of the series.
  async function historyOf(series) {
    const about = await load(`${series.job}/series`);
    const parts = await Promise.all(about.parts.map((part) => load(`${series.job}/${part}`)));
    const runs = { times: [], values: [], cells: [], columns: new Set() };
    parts.forEach((tables) => addTables(runs, tables, series.variable));
    runs.columns = about.columns.filter((name) => runs.columns.has(name));
    const details = about.series.find((each) => each.id === series.id);
    const verdicts = [...details.verdicts].map((cell) => iobands.cells[cell]);
    // after a killed report, the newest runs may have no verdicts yet
    [runs.times, runs.values, runs.cells].forEach((each) => each.splice(verdicts.length));
    return { series, ...runs, ...details, verdicts };
  }
  const histories = {};
  iobands.history = (id) => {
    histories[id] ??= historyOf(iobands.byId.get(id));
    return histories[id];
  };
})();
