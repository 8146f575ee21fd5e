const RETRY_SECONDS = 3;

let models = []; // that can speak, as `/v1/models` describes them
let keyNeeded = false;
let watching = false;
let wake = () => {};

/** Looks for the models until the service is ready. */
async function watch() {
  if (watching) return;
  watching = true;
  for (;;) {
    const pause = await look();
    if (pause === null) break;
    await new Promise((resolve) => {
      wake = resolve;
      if (pause < Infinity) setTimeout(resolve, 1000 * pause);
    });
  }
  watching = false;
}

/** @returns {Promise<number | null>} seconds until another look; null if all is well */
async function look() {
  const say = (ready, text) => {
    $("readiness").dataset.ready = ready;
    if ($("readiness").textContent !== text) $("readiness").textContent = text;
  };
  try {
    const list = await call("v1/models", { cache: "no-store" }, $("key").value.trim());
    const cards = (await list.json()).data;
    showModels(cards.filter((card) => card.abilities?.includes("speaks") ?? true));
    keyNeeded = false;
    clearError("key");
    if (!models.length) {
      say("no", "The service has no model that speaks; trying again");
      return RETRY_SECONDS;
    }
    await call("ready", { cache: "no-store" }, "");
    say("yes", "Ready");
    return null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    keyNeeded = error.status === 401;
    if (keyNeeded) {
      say("no", "An API key is needed: see Settings");
      $("settings").open = true;
      if ($("key").value) mark("key", error.message);
      return Infinity; // until another key is given
    }
    say("no", `${error.message.replace(/\.$/, "")}; trying again`);
    return RETRY_SECONDS;
  }
}

function showModels(cards) {
  if (JSON.stringify(cards) === JSON.stringify(models)) return;
  if (!models.length) $("problem").textContent = ""; // that there is none
  models = cards;
  showOptions("model", models.map((card) => card.id));
  chooseModel();
}

function showOptions(id, names) {
  const chosen = $(id).value;
  $(id).replaceChildren(...names.map((name) => new Option(name)));
  if (names.includes(chosen)) $(id).value = chosen;
}

function chooseModel() {
  const card = models.find(({ id }) => id === $("model").value);
  showOptions("voice", card?.voices ?? []);
  $("guidance").value = card?.cfg_scale ?? "";
  $("instructions-field").hidden = !card?.abilities?.includes("takes_instructions");
}
