const PCM_RATE = 24000; // Hz, of the format `pcm`
const KEY_ITEM = "speechlm-api-key";
const FIELDS = {
  input: "text",
  model: "model",
  voice: "voice",
  instructions: "instructions",
  speed: "speed",
  cfg_scale: "guidance",
  temperature: "temperature",
  seed: "seed",
  max_duration_seconds: "longest",
  key: "key",
};
const FINISH_REASONS = {
  stop: "the model was done",
  length: "cut at the longest audio that was possible",
  stopped: "by you",
  broken: "the audio is not complete",
};

const $ = (id) => document.getElementById(id);
const sound = $("sound");
const waveform = new Waveform($("wave"));
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let context = null; // made by a click: before one, browsers allow no sound
let run = null; // what was asked last
let player = null; // what plays it

// What is shown

const seconds = (value) => `${value.toFixed(value < 1 ? 2 : 1)} s`;

const busy = () => ["waiting", "speaking", "replaying"].includes(sound.dataset.state);

function setState(state, message) {
  sound.dataset.state = state;
  $("status").textContent = message;
  setEnabled("stop", busy());
  setEnabled("download", run.received > 0);
  setEnabled("again", run.received > 0 && !busy());
  setEnabled("keep-seed", run.seed !== null);
}

// A button that is `disabled` loses the focus, and with it the place of whoever uses a keyboard.
function setEnabled(id, enabled) {
  $(id).setAttribute("aria-disabled", String(!enabled));
}

function whenEnabled(id, action) {
  $(id).addEventListener("click", () => {
    if ($(id).getAttribute("aria-disabled") !== "true") action();
  });
}

function showFigures() {
  const { firstAudio, ended, began, received, rate, seed, finish } = run;
  const duration = received / rate;
  const show = (id, text) => ($(id).textContent = text);
  show("first-audio", firstAudio === null ? "–" : seconds(firstAudio));
  show("duration", received ? seconds(duration) : "–");
  const spent = ((ended ?? performance.now()) - began) / 1000;
  show("rtf", received ? (spent / duration).toFixed(2) : "–");
  show("finish", finish ?? "–");
  show("finish-hint", FINISH_REASONS[finish] ?? "");
  show("gaps", player ? String(player.underruns) : "–");
  show("seed-used", seed ?? "–");
  sound.dataset.received = received;
}

function showWave() {
  const heard = player?.position ?? 0;
  waveform.draw(heard);
  $("axis-end").textContent = `${waveform.span.toFixed(1)} s`;
  if (!player) return;
  sound.dataset.played = heard;
  sound.dataset.underruns = player.underruns;
  sound.dataset.peak = Math.max(Number(sound.dataset.peak), player.level);
}

function animate() {
  showWave();
  if (!busy()) return;
  if (calm.matches) setTimeout(animate, 250);
  else requestAnimationFrame(animate);
}

function describeWave() {
  const loudest = Math.round(100 * waveform.peak);
  $("wave").setAttribute(
    "aria-label",
    run.received
      ? `Waveform: ${seconds(run.received / run.rate)} of audio, loudest at ${loudest} percent.`
      : "Waveform: no audio.",
  );
}

// Errors

function showError(error) {
  const id = FIELDS[error.status === 401 ? "key" : error.param?.split(".")[0]];
  if (!id) {
    $("problem").textContent = error.message;
    return;
  }
  const prefix = `${error.param}: `;
  const { message } = error;
  mark(id, message.startsWith(prefix) ? message.slice(prefix.length) : message);
  $(id).focus();
}

function mark(id, message) {
  $(`${id}-error`).textContent = message;
  $(id).setAttribute("aria-invalid", "true");
  if ($("settings").contains($(id))) $("settings").open = true;
}

function clearError(id) {
  $(id).removeAttribute("aria-invalid");
  $(`${id}-error`).textContent = "";
}

function clearErrors() {
  Object.values(FIELDS).forEach(clearError);
  $("problem").textContent = "";
}

// The request

function number(id) {
  const { value, valueAsNumber, validity } = $(id);
  if (validity.badInput) throw fieldError(id, "this is not a number");
  return value === "" ? undefined : JSON.stringify(valueAsNumber);
}

function wholeNumber(id) {
  const value = $(id).value.trim();
  if (!/^-?\d*$/.test(value) || value === "-") throw fieldError(id, "this is not a whole number");
  return value === "" ? undefined : value.replace(/^(-?)0+(?=\d)/, "$1");
}

function instructions() {
  const text = $("instructions-field").hidden ? "" : $("instructions").value.trim();
  return text === "" ? undefined : JSON.stringify(text);
}

function fieldError(id, message) {
  const param = Object.keys(FIELDS).find((name) => FIELDS[name] === id);
  return new ApiError(message, { param });
}

function requestFields() {
  return [
    ["model", JSON.stringify($("model").value)],
    ["voice", JSON.stringify($("voice").value)],
    ["input", JSON.stringify($("text").value)],
    ["instructions", instructions()],
    ["speed", number("speed")],
    ["cfg_scale", number("guidance")],
    ["temperature", number("temperature")],
    ["seed", wholeNumber("seed")],
    ["max_duration_seconds", number("longest")],
  ];
}

function showCurl() {
  const body = jsonOf([
    ...run.fields.filter(([name]) => name !== "seed"),
    ["seed", run.seed],
    ["response_format", '"wav"'],
    ["sample_rate", run.rate],
  ]);
  $("curl").textContent = curlCommand(body, run.keyed);
  $("curl-key").hidden = !run.keyed;
  $("copied").textContent = "";
  $("curl-section").hidden = false;
}

// Speaking

async function speak() {
  halt();
  clearErrors();
  let fields;
  try {
    if (keyNeeded) throw new ApiError("an API key is needed", { status: 401 });
    if (!models.length) throw new ApiError("There is no model to speak with yet.");
    fields = requestFields();
  } catch (error) {
    showError(error);
    return;
  }
  context ??= new AudioContext({ sampleRate: PCM_RATE });
  context.resume();
  const key = $("key").value.trim();
  const mine = {
    fields,
    keyed: Boolean(key),
    controller: new AbortController(),
    began: performance.now(),
    firstAudio: null, // seconds
    ended: null,
    rate: PCM_RATE,
    seed: null,
    finish: null,
    pieces: [],
    received: 0, // samples
  };
  run = mine;
  player = null;
  Object.assign(sound.dataset, { received: 0, played: 0, peak: 0, underruns: 0 });
  $("curl-section").hidden = true;
  waveform.clear(PCM_RATE);
  showWave();
  showFigures();
  setState("waiting", "Waiting for the first audio.");
  try {
    await receive(mine, key);
  } catch (error) {
    if (run !== mine || error.name === "AbortError") return;
    fail(error);
  }
}

async function receive(mine, key) {
  const response = await call(
    "v1/audio/speech",
    {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: jsonOf([...mine.fields, ["response_format", '"pcm"'], ["stream_format", '"sse"']]),
      signal: mine.controller.signal,
    },
    key,
  );
  mine.seed = response.headers.get("x-seed");
  mine.rate = Number(response.headers.get("x-sample-rate") ?? PCM_RATE);
  waveform.clear(mine.rate);
  player = new Player(context, mine.rate, played);
  showCurl();
  const reader = new PcmReader();
  for await (const event of serverEvents(response.body)) {
    if (event.error) throw new ApiError(event.error.message, event.error);
    if (event.type === "speech.audio.delta") add(mine, reader.read(bytesOf(event.audio)));
    if (event.type === "speech.audio.done") {
      generated(mine, event.finish_reason);
      return;
    }
  }
  throw new ApiError("The connection ended before the audio was complete.");
}

function add(mine, samples) {
  if (mine.firstAudio === null) {
    mine.firstAudio = (performance.now() - mine.began) / 1000;
    setState("speaking", `Speaking. The first audio came after ${seconds(mine.firstAudio)}.`);
    animate();
  }
  mine.pieces.push(samples);
  mine.received += samples.length;
  waveform.push(samples);
  player.push(samples);
  setEnabled("download", true);
  showFigures();
}

function generated(mine, reason) {
  mine.ended = performance.now();
  mine.finish = reason;
  player.complete();
  showFigures();
  describeWave();
}

/** All has been heard. */
function played() {
  const silent = context.state !== "running";
  const length = seconds(run.received / run.rate);
  setState(
    "done",
    silent
      ? `${length} of audio came, but this browser plays no sound. It can be downloaded.`
      : `Finished: ${length} of audio.`,
  );
  showFigures();
  showWave();
}

function fail(error) {
  run.ended = performance.now();
  player?.stop();
  run.finish = run.received ? "broken" : null;
  showFigures();
  setState("failed", run.received ? "Broken off." : "Nothing was spoken.");
  describeWave();
  showError(error);
  if (error.status === 0 || error.status === 401 || error.status >= 500) watch();
}

/** Ends the work on the server, by leaving, and the sound. */
function halt() {
  if (!busy()) return;
  run.controller.abort();
  player?.stop();
  if (run.ended === null) {
    run.ended = performance.now();
    run.finish = "stopped";
  }
  showFigures();
  describeWave();
  setState("stopped", "Stopped.");
  showWave();
}

function playAgain() {
  context.resume();
  player = new Player(context, run.rate, played);
  setState("replaying", "Playing again.");
  run.pieces.forEach((piece) => player.push(piece));
  player.complete();
  animate();
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(wavFile(run.pieces, run.rate));
  link.download = `speech-${run.seed ?? "unknown"}.wav`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // a browser may ask first where to put it
}

async function copyCurl() {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText($("curl").textContent);
  } else {
    // Browsers have no clipboard for pages that came by plain HTTP from another machine.
    getSelection().selectAllChildren($("curl"));
    document.execCommand("copy");
  }
  $("copied").textContent = "Copied.";
}

// A browser that keeps nothing for this page refuses the store itself.
function store() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

// What can be done

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (!event.repeat) speak();
  }
  if (event.key === "Escape") halt();
});
whenEnabled("stop", halt);
whenEnabled("again", playAgain);
whenEnabled("download", download);
whenEnabled("keep-seed", () => ($("seed").value = run.seed));
$("copy").addEventListener("click", copyCurl);
$("model").addEventListener("change", chooseModel);
for (const id of Object.values(FIELDS)) $(id).addEventListener("input", () => clearError(id));
$("key").value = store()?.getItem(KEY_ITEM) ?? "";
$("key").addEventListener("input", () => store()?.setItem(KEY_ITEM, $("key").value.trim()));
$("key").addEventListener("change", () => (watching ? wake() : watch()));
new ResizeObserver(showWave).observe($("wave"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showWave);
watch();
