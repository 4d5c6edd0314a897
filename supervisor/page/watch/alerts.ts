/**
 * Says what a person has to know first: models that answer nothing, then what is on the way there, each with what to do.
 * A model that wants no workers is no alert, and neither is one that is still being loaded.
 */
import type { LiveDeath, LiveModel, LiveServer, LiveWorker } from '../../status/live-types.js';
import { age, plural } from '../parts/format.js';

export interface Alert {
  /** Stays the same while the alert does. */
  readonly id: string;
  /** `bad`: calls are not answered. `warn`: it needs a look. */
  readonly level: 'bad' | 'warn';
  /** Does not change with time: it is read out when it appears. */
  readonly title: string;
  readonly text: string;
  /** Empty if there is nothing to do. */
  readonly todo: string;
  /** The worker's death that it is about; null if it is about none. */
  readonly death: LiveDeath | null;
  /** Whether the last words of the dead worker are shown at once: nothing else says why it died. */
  readonly opensDeath: boolean;
}

export interface Watched {
  readonly at: number;
  readonly server: LiveServer | null;
  readonly models: readonly LiveModel[];
  readonly deaths: readonly LiveDeath[];
}

/** Time for which the death of a worker that was replaced is shown on top; the list of calls has it longer. */
const DEATH_SHOWN_MS = 5 * 60_000;
const FULL = 0.8;

/** The worst first. */
export function alertsOf(watched: Watched): Alert[] {
  const { server, models } = watched;
  const all = [
    ...(server?.state === 'draining' ? [DRAINING] : []),
    ...models.flatMap((model) => [
      ...gaveUp(model, watched),
      ...withoutWorkers(model, watched),
      ...fullQueue(model),
      ...frozen(model),
      ...died(model, watched),
    ]),
  ];
  return [...all.filter(({ level }) => level === 'bad'), ...all.filter(({ level }) => level === 'warn')];
}

const DRAINING: Alert = {
  id: 'draining',
  level: 'warn',
  title: 'The server is ending',
  text: 'It finishes the calls that it has, and refuses new ones with 503.',
  todo: '',
  death: null,
  opensDeath: false,
};

/** `digits`, or `digits 2` if there are several versions. */
export function modelName(
  { name, version }: { name: string; version: string },
  all: readonly LiveModel[],
): string {
  return all.filter((other) => other.name === name).length > 1 ? `${name} ${version}` : name;
}

/** Whether it wants workers and is not being taken away: only then is a missing worker bad. */
function isWanted({ state, wantedWorkers }: LiveModel): boolean {
  return wantedWorkers > 0 && state !== 'unloading' && state !== 'unloaded' && state !== 'draining';
}

function gaveUp(model: LiveModel, { models, deaths }: Watched): Alert[] {
  const latched = model.workers.filter((worker) => worker.latched !== null);
  const [first] = latched;
  if (first === undefined || first.latched === null || !isWanted(model)) return [];
  const { code, message } = first.latched;
  const name = modelName(model, models);
  return [
    {
      id: `latched-${model.key}`,
      level: model.isLatched ? 'bad' : 'warn',
      title: model.isLatched
        ? `${name} has given up: no worker can start`
        : `${name} has given up on ${plural(latched.length, 'worker')} of ${model.workers.length}`,
      text: message === '' ? code : `${code}: ${message}`,
      todo: TODO[code] ?? TODO_ANY,
      death: deathOf(first, deaths),
      opensDeath: message === '',
    },
  ];
}

const AGAIN = 'then start the server again; with --watch, saving the file is enough.';
const TODO_ANY = `Read the last lines of its output, correct the app, ${AGAIN}`;
const TODO: Readonly<Record<string, string>> = {
  SERVE_APP_INVALID: `The app cannot be loaded: correct it, ${AGAIN}`,
  SERVE_INIT_FAILED: `init or the example failed twice in the same way: correct it, ${AGAIN}`,
  SERVE_INIT_TIMEOUT: 'Load less in init, or raise --init-timeout, and start the server again.',
};

function withoutWorkers(model: LiveModel, { at, models, deaths }: Watched): Alert[] {
  if (model.state !== 'unhealthy' || model.isLatched || !isWanted(model)) return [];
  const next = model.workers.flatMap(({ retryInMs }) => (retryInMs === null ? [] : [retryInMs]));
  const starting = model.workers.filter(({ pid }) => pid !== null);
  const last = deaths.findLast(({ key }) => key === model.key) ?? null;
  const how = last === null ? '' : `Worker ${last.worker} died ${age(at - last.at)} ago: ${last.how}. `;
  const follows =
    starting.length > 0
      ? `${plural(starting.length, 'worker')} starting.`
      : next.length > 0
        ? `The next start is in ${age(Math.min(...next))}.`
        : 'The next one waits for its turn to start.';
  return [
    {
      id: `unhealthy-${model.key}`,
      level: 'bad',
      title: `${modelName(model, models)} has no ready worker`,
      text: `${how}Calls wait meanwhile. ${follows}`,
      todo: last?.during === 'start' ? 'It dies before it is ready: read the last lines of its output.' : '',
      death: last,
      opensDeath: true,
    },
  ];
}

function fullQueue(model: LiveModel): Alert[] {
  const waiting = (model.sample.waiting ?? 0) + (model.sample.arriving ?? 0);
  if (waiting < FULL * model.maxQueueCalls) return [];
  return [
    {
      id: `queue-${model.key}`,
      level: 'warn',
      title: `The queue of ${model.name} is nearly full`,
      text: `${waiting} of ${model.maxQueueCalls} places are taken; beyond them calls get 503.`,
      todo: 'Add workers, or batch calls with --batch-size.',
      death: null,
      opensDeath: false,
    },
  ];
}

function frozen({ key, name, workers }: LiveModel): Alert[] {
  return workers
    .filter(({ state }) => state === 'frozen')
    .map(({ index, pid }) => ({
      id: `frozen-${key}-${index}`,
      level: 'warn',
      title: `Worker ${index} of ${name} is frozen`,
      text: 'A signal (SIGSTOP) has stopped its process; it gets no calls.',
      todo: pid === null ? '' : `kill -CONT ${pid} lets it go on.`,
      death: null,
      opensDeath: false,
    }));
}

/** The last death of a model whose workers are well again; those of a model without workers are told with it. */
function died(model: LiveModel, { at, models, deaths }: Watched): Alert[] {
  if (model.isLatched || model.state === 'unhealthy') return [];
  const own = deaths.filter((death) => death.key === model.key && at - death.at < DEATH_SHOWN_MS);
  const last = own.at(-1);
  if (last === undefined) return [];
  const others = own.length === 1 ? '' : ` ${own.length} died in the last five minutes.`;
  return [
    {
      id: `died-${model.key}`,
      level: 'warn',
      title: `Worker ${last.worker} of ${modelName(model, models)} died: ${last.how}`,
      text: `${age(at - last.at)} ago. ${deathText(last)}${others}`,
      todo: '',
      death: last,
      opensDeath: false,
    },
  ];
}

/** In a sentence: during what it died, and a likely reason. */
export function deathText({ during, requestId, hint, cause }: LiveDeath): string {
  const doing = {
    start: 'It was starting.',
    idle: 'It was idle.',
    call: `It was running the call ${requestId}, which got SERVE_WORKER_LOST.`,
  }[during];
  const likely =
    hint === '' ? (cause === 'out of memory' ? 'It ran out of memory.' : '') : `${capital(hint)}.`;
  return [doing, likely].filter((part) => part !== '').join(' ');
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function deathOf({ lastDeath }: LiveWorker, deaths: readonly LiveDeath[]): LiveDeath | null {
  return deaths.find(({ id }) => id === lastDeath) ?? null;
}
