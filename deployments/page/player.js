const START_SECONDS = 0.1; // collected before the first sound, and twice as much after each gap
const LEAD_SECONDS = 0.03; // from scheduling a sound to its start
const FADE_SECONDS = 0.015; // a sound cut at once would click

/** Plays pieces of audio without a gap as long as they come in time. */
class Player {
  #context;
  #rate;
  #onEnd;
  #volume;
  #analyser;
  #window;
  #sources = new Set();
  #collected = []; // not scheduled yet
  #flowing = false;
  #scheduled = 0; // samples
  #stretch = { time: 0, sample: 0 }; // where the sound without a gap began
  #complete = false;
  #stopped = false;

  /** Times at which the sound ended before more had come. */
  underruns = 0;

  /**
   * @param {AudioContext} context
   * @param {number} rate of the samples, in Hz
   * @param {() => void} onEnd called when all has been heard, and not after `stop`
   */
  constructor(context, rate, onEnd) {
    this.#context = context;
    this.#rate = rate;
    this.#onEnd = onEnd;
    this.#volume = new GainNode(context);
    this.#analyser = new AnalyserNode(context, { fftSize: 2048 });
    this.#window = new Float32Array(this.#analyser.fftSize);
    this.#volume.connect(this.#analyser).connect(context.destination);
  }

  /** @param {Int16Array} samples what follows */
  push(samples) {
    if (this.#stopped || !samples.length) return;
    this.#collected.push(samples);
    if (this.#flowing && this.#end() < this.#context.currentTime) {
      this.#flowing = false;
      this.underruns += 1;
    }
    const enough = START_SECONDS * 2 ** this.underruns;
    const held = this.#collected.reduce((sum, piece) => sum + piece.length, 0);
    if (this.#flowing || held >= enough * this.#rate) this.#schedule();
  }

  /** Nothing more will come. */
  complete() {
    this.#complete = true;
    this.#schedule();
    if (!this.#sources.size || this.#context.state !== "running") this.#ended();
  }

  /** Silence, now. */
  stop() {
    if (this.#stopped) return;
    this.#stopped = true;
    const now = this.#context.currentTime;
    this.#volume.gain.setValueAtTime(1, now);
    this.#volume.gain.linearRampToValueAtTime(0, now + FADE_SECONDS);
    for (const source of this.#sources) source.stop(now + FADE_SECONDS);
  }

  /** Samples that have been heard. */
  get position() {
    if (!this.#scheduled) return 0;
    const since = Math.max(0, this.#context.currentTime - this.#stretch.time);
    return Math.min(this.#scheduled, Math.floor(this.#stretch.sample + since * this.#rate));
  }

  /** The largest value of what is being heard, 0 to 1. */
  get level() {
    this.#analyser.getFloatTimeDomainData(this.#window);
    return this.#window.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  }

  #end() {
    return this.#stretch.time + (this.#scheduled - this.#stretch.sample) / this.#rate;
  }

  #schedule() {
    for (const samples of this.#collected.splice(0)) {
      if (!this.#flowing) {
        // At a whole sample of the output, since a fraction would be interpolated at each border.
        const { currentTime, sampleRate } = this.#context;
        const time = Math.ceil((currentTime + LEAD_SECONDS) * sampleRate) / sampleRate;
        this.#stretch = { time, sample: this.#scheduled };
        this.#flowing = true;
      }
      const buffer = new AudioBuffer({ length: samples.length, sampleRate: this.#rate });
      buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0);
      const source = new AudioBufferSourceNode(this.#context, { buffer });
      source.connect(this.#volume);
      source.onended = () => {
        this.#sources.delete(source);
        if (this.#complete && !this.#sources.size) this.#ended();
      };
      source.start(this.#end());
      this.#sources.add(source);
      this.#scheduled += samples.length;
    }
  }

  #ended() {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#onEnd();
  }
}
