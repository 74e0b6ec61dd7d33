// Shows the page that the address names.
"use strict";

(() => {
  const { element } = iobands;
  const HALF_A_MINUTE = 30_000;

  function showNothing(main) {
    main.replaceChildren(element("h1", {}, "No such series"), element("p", { class: "card plain" },
      "No series has this name. ", element("a", { href: "#/" }, "All series")));
  }

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
    const pages = { __proto__: null, "": iobands.showFront, compare: iobands.showCompare, series: iobands.byId.has(id) && iobands.showSeries };
    (pages[kind] || showNothing)(main, settings, id)?.catch((error) => {
      if (iobands.place().place !== place) return;
      document.getElementById("loading")?.remove();
      main.append(element("p", { class: "card plain", role: "alert" }, error.message));
    });
  }

  iobands.ready = new Promise((resolve) => {
    document.addEventListener("DOMContentLoaded", resolve);
  });

  iobands.start = () => {
    const { site } = iobands;
    if (site.several) document.querySelector("nav").prepend(element("a", { href: "../index.html" }, "All sites"));
    setInterval(iobands.showState, HALF_A_MINUTE);
    show();
    const main = document.getElementById("main");
    addEventListener("hashchange", () => {
      show();
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    });
    // following the link would set the address to "#main", which is no place
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      main.focus();
    });
    document.getElementById("footer").replaceChildren(
      `iobands ${site.version} · GiB is 2`, element("sup", {}, "30"), " bytes",
      site.public ? " · without people, nodes, jobs and reasons" : "");
  };
})();
