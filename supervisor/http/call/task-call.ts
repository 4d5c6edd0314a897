/** Plans a call whose path names a task of a model, such as embedding, and not the model, which the body may name. */
import { ServeError } from '../../../protocol/errors.js';
import type { Task } from '../../../protocol/wire/messages.js';
import { rootOrOnlyRoute } from '../../models/main-route.js';
import type { Model } from '../../models/model.js';
import type { Models } from '../../models/models.js';
import type { CallPlan, Target } from './call-plan.js';
import { jsonField, targetNamedBy } from './find-model.js';

const FIELD = 'model';

/**
 * `format`: reads the body and writes the answer, with the model's name as a parameter. Clients give one model any name, so
 * the body is searched for a name only if the server has several models. @throws SERVE_NOT_FOUND if no model has this task
 */
export function taskPlan(models: Models, task: Task, format: string): CallPlan {
  const all = models.describe().flatMap((one) => (one.isDefault && !one.isLeaving ? [one.model] : []));
  const able = all.filter(({ info }) => info === null || info.task === task);
  const [first] = able;
  if (first === undefined) throw noTask('No model of this server has', task);
  return {
    target:
      all.length === 1
        ? targetOf(first, task)
        : targetNamedBy(jsonField(FIELD), (name) => targetOf(named(name, all, able, task), task)),
    format,
    answer: format,
    dialectParams: ({ spec }) => ({ model: spec.name }),
  };
}

/** `able`: the models that have this task, and those that are not loaded yet. */
function named(name: string | null, all: readonly Model[], able: readonly Model[], task: Task): Model {
  const meant = all.find(({ spec }) => spec.name === name);
  if (meant !== undefined) return meant;
  const loaded = able.filter(({ info }) => info !== null);
  const isLoading = able.some(
    ({ info, health, crew }) => info === null && health.takesCalls && crew.wanted > 0,
  );
  const [only, ...others] = loaded.length === 0 ? able : loaded;
  if (only !== undefined && others.length === 0 && (!isLoading || able.length === 1)) return only;
  if (isLoading) throw new ServeError('SERVE_NOT_READY', STILL_LOADING, { retryAfterS: 1 });
  const listed = able.map(({ spec }) => spec.name).join(', ');
  const message = `Name the model as "${FIELD}", in the first 64 KiB of the body; with the task ${task} there are ${listed}.`;
  throw new ServeError(name === null ? 'SERVE_BAD_REQUEST' : 'SERVE_MODEL_NOT_FOUND', message, {
    issues: [{ path: [FIELD], message }],
  });
}

const STILL_LOADING = 'Models of this server are still loading, so it is not known yet which one is meant.';

/** The task and the route are checked once the app is loaded. */
function targetOf(model: Model, task: Task): Target {
  return {
    model,
    route(routes) {
      const who = `The model ${model.spec.name}`;
      if (model.info?.task !== task) throw noTask(`${who} does not have`, task);
      const path = rootOrOnlyRoute(() => new ServeError('SERVE_NOT_FOUND', `${who} has no route /.`))(routes);
      if (routes.get(path)?.kind !== 'background') return path;
      throw new ServeError(
        'SERVE_BAD_REQUEST',
        `${who} runs its calls in the background; call its route ${path}.`,
      );
    },
  };
}

function noTask(lacks: string, task: Task): ServeError {
  const lines = `export const task = '${task}', in Python task = "${task}"`;
  return new ServeError('SERVE_NOT_FOUND', `${lacks} the task ${task}. Add this line to its app: ${lines}.`);
}
