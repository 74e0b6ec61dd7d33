// Shows the page that the address names.
"use strict";

(() => {
  const HALF_A_MINUTE = 30_000;

  function show() {
    const { place, settings } = iobands.place();
    const main = document.getElementById("main");
    const [kind, id] = place.split("/");
    document.querySelectorAll("nav a").forEach((a) => {
      const here = kind === "compare" ? a.hash === "#/compare" : kind === "" && a.id === "home";
      if (here) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    });
    iobands.page = kind === "compare" ? "Compare" : kind === "series" ? iobands.byId.get(id)?.label : "";
    iobands.showState();
    iobands.leave?.();
    iobands.leave = null;
    if (kind === "series" && iobands.byId.has(id)) iobands.showSeries(main, id, settings);
    else if (kind === "compare") iobands.showCompare(main, settings);
    else if (kind === "") iobands.showFront(main, settings);
    else {
      main.replaceChildren(iobands.element("h1", {}, "No such series"), iobands.element("p", { class: "card plain" },
        "No series has this name. ", iobands.element("a", { href: "#/" }, "All series")));
    }
  }

  iobands.ready = new Promise((resolve) => {
    document.addEventListener("DOMContentLoaded", resolve);
  });

  iobands.start = () => {
    const { site } = iobands;
    setInterval(iobands.showState, HALF_A_MINUTE);
    show();
    const main = document.getElementById("main");
    addEventListener("hashchange", () => {
      show();
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    });
    // "main" behind the # would be read as a place
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      main.focus();
    });
    document.getElementById("footer").replaceChildren(
      `iobands ${site.version} · GiB is 2`, iobands.element("sup", {}, "30"), " bytes",
      site.public ? " · without people, nodes, jobs and reasons" : "");
  };
})();
