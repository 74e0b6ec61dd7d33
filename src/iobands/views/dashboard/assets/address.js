// The address behind the #: a place, and settings that hold the choices of the reader.
//   #/?q=scratch+write&state=degraded
//   #/series/0123456789?from=2026-01-01&to=2026-02-01
//   #/compare?sets=0123456789,abcdef0123@2026-10-01..2026-11-01
"use strict";

iobands.address = (place, settings = {}) => {
  const kept = Object.entries(settings).filter(([, value]) => value);
  const query = new URLSearchParams(kept).toString().replaceAll("%2C", ",").replaceAll("%40", "@");
  return `#/${place}${query ? `?${query}` : ""}`;
};

iobands.place = () => {
  const [place, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { place, settings: Object.fromEntries(new URLSearchParams(query ?? "")) };
};

// Adds settings to the address without a new entry in the browser's history.
iobands.keep = (settings) => {
  const now = iobands.place();
  history.replaceState(null, "", iobands.address(now.place, { ...now.settings, ...settings }));
};
