const BIN_SECONDS = 0.01;
const SHORTEST_SECONDS = 4; // shown at least: a short beginning is not stretched
const LOUDNESS_POWER = 0.6; // quiet sounds can be seen, as they can be heard
const BAR_PIXELS = 3;
const BAR_GAP_PIXELS = 2;

/** Draws the loudness over time, what has been heard in another colour. */
class Waveform {
  #canvas;
  #peaks = []; // 0 to 1, of each bin
  #bin = 240; // samples
  #count = 0; // samples
  #rate = 24000;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
  }

  /** @param {number} rate of the samples that will come, in Hz */
  clear(rate) {
    this.#rate = rate;
    this.#bin = Math.round(rate * BIN_SECONDS);
    this.#peaks = [];
    this.#count = 0;
  }

  /** @param {Int16Array} samples what follows */
  push(samples) {
    for (const sample of samples) {
      const bin = Math.floor(this.#count / this.#bin);
      this.#peaks[bin] = Math.max(this.#peaks[bin] ?? 0, Math.abs(sample) / 32768);
      this.#count += 1;
    }
  }

  /** The loudest sample, 0 to 1. */
  get peak() {
    return this.#peaks.reduce((most, value) => Math.max(most, value), 0);
  }

  /** Seconds that the width stands for. */
  get span() {
    return Math.max(SHORTEST_SECONDS, this.#count / this.#rate);
  }

  /** @param {number} heard samples */
  draw(heard) {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = window.devicePixelRatio;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    const pen = this.#canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(this.#canvas);
    const colour = (name) => style.getPropertyValue(name);
    const bars = Math.max(1, Math.floor(width / (BAR_PIXELS + BAR_GAP_PIXELS)));
    const binsPerBar = this.span / BIN_SECONDS / bars;
    for (let bar = 0; bar < bars; bar += 1) {
      const from = Math.floor(bar * binsPerBar);
      const to = Math.max(from + 1, Math.floor((bar + 1) * binsPerBar));
      const peak = Math.max(...this.#peaks.slice(from, to), 0);
      const there = from < this.#peaks.length;
      const length = Math.max(BAR_PIXELS, peak ** LOUDNESS_POWER * height);
      pen.fillStyle = colour(
        !there ? "--wave-empty" : from * this.#bin < heard ? "--wave-heard" : "--wave-ahead",
      );
      pen.beginPath();
      const x = bar * (BAR_PIXELS + BAR_GAP_PIXELS);
      pen.roundRect(x, (height - length) / 2, BAR_PIXELS, length, BAR_PIXELS / 2);
      pen.fill();
    }
  }
}
