// The page of several sites: if it is old by the reader's clock, its states are unknown.
"use strict";

(() => {
  const note = document.querySelector("[data-made]");
  const days = note ? Math.floor((Date.now() / 1000 - note.dataset.made) / 86400) : 0;
  if (days < 2) return;
  document.title = `UNKNOWN · ${document.title}`;
  document.querySelector("h1").textContent = `No report for ${days} days: the state of the sites is not known`;
  note.textContent += `${note.dataset.ask} Below is what was known then.`;
})();
