// A model in a worker: starts the worker when something is asked, and notices when it stops.

const PATIENCE = 5000; // milliseconds after which a worker that says nothing has stopped

export class ModelWorker {
  /** @type {Worker | null} */
  worker = null;
  asked = 0;
  /** @type {number | undefined} */
  waiting = undefined;

  /**
   * @param {string} script the code of the worker
   * @param {() => any} model what the worker is told when it starts
   * @param {(answer: any, isNewest: boolean) => void} hear called with what the worker says, and whether that answers
   *   the newest question
   * @param {() => void} stopped called when an answer does not come
   */
  constructor(script, model, hear, stopped) {
    this.script = script;
    this.model = model;
    this.hear = hear;
    this.stopped = stopped;
  }

  start() {
    const address = URL.createObjectURL(new Blob([this.script], { type: "text/javascript" }));
    try {
      this.worker = new Worker(address);
      this.worker.addEventListener("message", ({ data }) => this.take(data));
      this.worker.addEventListener("error", () => this.stop());
      this.worker.postMessage(this.model());
    } catch {
      // The browser forbids workers, so no answer will come.
    }
    URL.revokeObjectURL(address);
  }

  end() {
    this.settle();
    this.worker?.terminate();
    this.worker = null;
  }

  stop() {
    this.end();
    this.stopped();
  }

  settle() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
  }

  wait() {
    this.waiting ??= setTimeout(() => this.stop(), PATIENCE);
  }

  ask(question) {
    if (!this.worker) this.start();
    this.asked += 1;
    this.worker?.postMessage({ ...question, asked: this.asked });
    this.wait();
  }

  /** Take what the worker says, and wait for more where something is still to be answered. */
  take(said) {
    const isNewest = said.asked === this.asked;
    this.settle();
    if (said.asked && (said.more || !isNewest)) this.wait();
    this.hear(said, isNewest);
  }
}
