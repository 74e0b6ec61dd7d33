// Search from a disk: browsers start no worker from a file, so a hidden frame runs its script.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const load = (source) => new Promise((loaded) => {
        const script = inside.document.createElement("script");
        script.src = source;
        script.onload = loaded;
        inside.document.head.append(script);
      });
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", {data});
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      const begun = load(url);
      this.postMessage = (data) =>
        begun.then(() => inside.dispatchEvent(new MessageEvent("message", {data})));
      this.terminate = () => frame.remove();
    }
  };
}
