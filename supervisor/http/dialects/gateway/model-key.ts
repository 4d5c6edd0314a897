/**
 * Whose route a start calls: that of the model which `modelKey` names. Banana's clients always send one, which means
 * nothing to a server of one model: there it is ignored. With several models a key that names none of them is refused,
 * and one that is missing means the default model.
 */
import type { Models } from '../../../models/models.js';
import type { Model } from '../../../models/model.js';
import { defaultModel } from '../../call/default-model.js';
import { TopLevelScan, readString } from '../../json/top-level-fields.js';
import type { CallPlan, Target } from '../dialect.js';

/** The app's route that is called this way. */
export const GATEWAY_ROUTE = '/';

const FIELD = 'modelKey';

/** The longest key that is read, as written. */
const MAX_KEY_BYTES = 4096;

export function startTarget(models: Models): CallPlan['target'] {
  const only = onlyModel(models);
  if (only !== null) return target(only);
  return (prefix, isLast) => {
    const scan = new TopLevelScan(prefix, [FIELD]);
    scan.step(prefix.length); // what is cut off looks malformed; the fields before are found
    const range = scan.fields.get(FIELD);
    if (range === undefined) return isLast ? target(defaultModel(models)) : 'more';
    const name = readString(prefix, range, MAX_KEY_BYTES);
    return target(name === null ? defaultModel(models) : models.find({ name }));
  };
}

function target(model: Model): Target {
  return { model, route: GATEWAY_ROUTE };
}

/** The default version of the only model; null if there are several, or none. */
function onlyModel(models: Models): Model | null {
  const names = new Set(Array.from(models.all(), ({ spec }) => spec.name));
  const [name] = names;
  return name === undefined || names.size > 1 ? null : models.find({ name });
}
