// Browsers start no workers on pages that were opened as files. The search runs in a hidden frame there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      this.ready = new Promise((resolve) => {
        inner.importScripts = (...scripts) => {
          let done = Promise.resolve();
          for (const script of scripts) {
            done = done.then(() => load(inner, script));
          }
          return done;
        };
        inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        load(inner, url).then(resolve);
      });
      this.inner = inner;
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };

  function load(target, url) {
    return new Promise((resolve, reject) => {
      const script = target.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${url}`));
      target.document.body.appendChild(script);
    });
  }
}
