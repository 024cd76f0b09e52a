// Search in pages that are opened from a disk, where browsers start no workers: its script runs in a hidden frame.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.document.open();
    inside.document.write("<!doctype html><body></body>");
    inside.document.close();
    // what a worker calls: messages to the page, scripts one after the other
    inside.postMessage = (data) => {
      const message = new MessageEvent("message", { data });
      this.dispatchEvent(message);
      if (this.onmessage) this.onmessage(message);
    };
    inside.importScripts = (...addresses) =>
      addresses.reduce((before, address) => before.then(() => this.load(address)), Promise.resolve());
    this.ready = this.load(url);
  }

  load(address) {
    return new Promise((resolve, reject) => {
      const script = this.frame.contentDocument.createElement("script");
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${address} can't be loaded`));
      script.src = address;
      this.frame.contentDocument.body.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

window.IFrameWorker = FrameWorker; // Material's search looks for it
if (location.protocol === "file:") window.Worker = FrameWorker;
