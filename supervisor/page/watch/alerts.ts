/**
 * Says what a person has to know first: models that answer nothing, then what is on the way there, each with what to do.
 * A model that wants no workers is no alert, and neither is one that is still being loaded.
 */
import { useEffect } from 'preact/hooks';
import type { LiveDeath, LiveModel, LiveServer, LiveWorker } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import type { Connection } from '../live/connection.js';
import type { History } from '../live/history.js';
import { age, plural } from '../parts/format.js';
import { html, h, type Tone, type VNode } from '../parts/html.js';
import { deathText, modelName } from './models.js';
import { DeathDetails } from './words.js';

/** One thing that a person has to know before all else. */
interface Alert {
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

const LEVELS = { bad: ['▲', 'Problem'], warn: ['◆', 'Warning'] } as const;

const NAME = 'banana-serve';

/** Everything that a person has to know first, above both views; the number of problems is in the title of the tab. */
export function AlertsView({ store }: { readonly store: Store }): VNode {
  const { connection, history } = store;
  const known = history === null || hasEndedWell(connection) ? [] : alertsOf(history);
  const alerts = [connectionAlert(connection), ...known].filter((alert) => alert !== null);
  const problems = alerts.filter(({ level }) => level === 'bad').length;
  useEffect(() => {
    document.title = problems === 0 ? NAME : `▲ ${plural(problems, 'problem')} · ${NAME}`;
  }, [problems]);
  return html`<section class="alerts" aria-label="Alerts">
    <p class="offscreen" role="status">${alerts.map(({ title }) => title).join('. ')}</p>
    ${alerts.map(article)}
  </section>`;
}

function article({ id, level, title, text, todo, death, opensDeath }: Alert): VNode {
  const [sign, word] = LEVELS[level];
  return html`<article key=${id} class=${`alert ${level}`}>
    <p class="title">
      <span class="sign" aria-hidden="true">${sign}</span>
      <span class="offscreen">${word}: </span>${title}
    </p>
    ${text !== '' && html`<p class="text">${text}</p>`}
    ${todo !== '' && html`<p class="text todo">${todo}</p>`}
    ${death !== null && h(DeathDetails, { death, isOpen: opensDeath })}
  </article>`;
}

/** A server that has ended as it should has no other problems; one that could not start ended because of them. */
function hasEndedWell(connection: Connection): boolean {
  return connection.state === 'ended' && connection.reason !== 'failed';
}

const ENDS = {
  drained: 'It has finished its calls and ended.',
  cut: 'The drain timeout passed before all calls were finished: the rest was cut.',
  failed: 'No worker could start.',
} as const;

function connectionAlert(connection: Connection): Alert | null {
  const alert = { ...WARNING, id: 'connection', level: 'bad' } as const;
  if (connection.state === 'ended')
    return {
      ...alert,
      title: 'The server has ended',
      text: `${ENDS[connection.reason]} What you see is its last state.`,
      todo: 'This page connects by itself as soon as a server runs here again.',
    };
  if (connection.state !== 'waiting') return null;
  const lostMs = performance.now() - connection.since;
  return {
    ...alert,
    title: 'No connection to the server',
    text: `${connection.problem} What you see is old${lostMs < 2000 ? '' : `, by ${age(lostMs)}`}.`,
    todo: 'If it has crashed or was killed, start it again: this page connects by itself.',
  };
}

/** A warning without anything to do, to begin with. */
const WARNING = { level: 'warn', todo: '', death: null, opensDeath: false } as const;

/** Everything from which alerts follow. */
export type Watched = Pick<History, 'at' | 'server' | 'models' | 'deaths'>;

/** The worst first. */
export function alertsOf(watched: Watched): Alert[] {
  const all = watched.models.flatMap((model) => modelAlerts(model, watched));
  if (watched.server?.state === 'draining') all.unshift(DRAINING);
  return all.toSorted((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'));
}

const TONES: Readonly<Record<LiveServer['state'], Tone>> = {
  starting: 'busy',
  ready: 'good',
  idle: 'good',
  unhealthy: 'bad',
  failing: 'bad',
  draining: 'warn',
};

/** The state of the server in a word, as far as its alerts agree: with a model that has given up it is not well. */
export function serverState(watched: Watched): [Tone, string] {
  const { models } = watched;
  const state = watched.server?.state ?? 'starting';
  if (state === 'draining') return ['warn', state];
  const alerts = alertsOf(watched);
  const bad = alerts.filter(({ level }) => level === 'bad').length;
  const serves = models.some((model) => model.state === 'ready');
  const word = state === 'starting' && serves ? 'ready' : state;
  if (bad > 0) return ['bad', `${serves ? '' : 'not ready, '}${plural(bad, 'problem')}`];
  if (alerts.length > 0) return ['warn', `${word}, ${plural(alerts.length, 'warning')}`];
  const loading = models.filter((model) => model.state === 'starting').length;
  return loading > 0 && serves ? ['good', `${word}, ${loading} loading`] : [TONES[state], word];
}

const DRAINING: Alert = {
  ...WARNING,
  id: 'draining',
  title: 'The server is ending',
  text: 'It finishes the calls that it has, and refuses new ones with 503.',
};

/** Time for which the death of a worker that was replaced is shown on top; the list of calls has it longer. */
const DEATH_SHOWN_MS = 5 * 60_000;
/** Share of the places in a queue from which on it is nearly full. */
const FULL = 0.8;

function modelAlerts(model: LiveModel, watched: Watched): Alert[] {
  return [
    cannotStart(model, watched),
    withoutWorkers(model, watched),
    halfStrength(model, watched),
    fullQueue(model),
    ...frozen(model),
    died(model, watched),
  ].filter((alert) => alert !== null);
}

/** Whether it wants workers and is not being taken away: only then is a missing worker bad. */
function isWanted({ state, wantedWorkers }: LiveModel): boolean {
  return wantedWorkers > 0 && state !== 'unloading' && state !== 'unloaded' && state !== 'draining';
}

/** The workers that cannot start: none of them is started again (latched), or the server goes on trying (failing). */
function cannotStart(model: LiveModel, { models, deaths }: Watched): Alert | null {
  const failed = model.workers.filter((worker) => worker.failure !== null);
  const [first] = failed;
  if (first === undefined || first.failure === null || !isWanted(model)) return null;
  const { code, message } = first.failure;
  return {
    id: `failed-${model.key}`,
    level: areAllOut(model) ? 'bad' : 'warn',
    title: failureTitle(model, failed, modelName(model, models)),
    text: message === '' ? code : `${code}: ${message}`,
    todo: first.state === 'latched' ? (CURES[code] ?? USUAL_CURE) : `${nextStart(model)} ${GOES_ON}`,
    death: deathOf(first, deaths),
    opensDeath: message === '',
  };
}

function failureTitle(model: LiveModel, failed: readonly LiveWorker[], name: string): string {
  if (model.isLatched) return `${name} has given up: no worker can start`;
  if (model.state === 'failing') return `${name} cannot start: its workers failed too often in a row`;
  const have = failed[0]?.state === 'latched' ? 'has given up on' : 'cannot start';
  return `${name} ${have} ${plural(failed.length, 'worker')} of ${model.workers.length}`;
}

/** Whether calls are refused, since no worker can start. */
function areAllOut({ isLatched, state }: LiveModel): boolean {
  return isLatched || state === 'failing';
}

const GOES_ON =
  'The server goes on trying: bring back what the app needs, or correct the app. SIGHUP to the server tries at once.';

const AGAIN = 'then start the server again; with --watch, saving the file is enough.';
const USUAL_CURE = `Read the last lines of its output, correct the app, ${AGAIN}`;
const CURES: Readonly<Record<string, string>> = {
  SERVE_APP_INVALID: `The app cannot be loaded: correct it, ${AGAIN}`,
  SERVE_INIT_FAILED: `init or the example fails: correct it, ${AGAIN}`,
  SERVE_INIT_TIMEOUT: 'Load less in init, or raise --init-timeout, and start the server again.',
};

const DIES_EARLY = 'It dies before it is ready: read the last lines of its output.';

function withoutWorkers(model: LiveModel, { at, models, deaths }: Watched): Alert | null {
  if (model.state !== 'unhealthy' || areAllOut(model) || !isWanted(model)) return null;
  const last = deaths.findLast(({ key }) => key === model.key) ?? null;
  const how = last === null ? '' : `Worker ${last.worker} died ${age(at - last.at)} ago: ${last.how}. `;
  return {
    id: `unhealthy-${model.key}`,
    level: 'bad',
    title: `${modelName(model, models)} has no ready worker`,
    text: `${how}Calls wait meanwhile. ${nextStart(model)}`,
    todo: last?.during === 'start' ? DIES_EARLY : '',
    death: last,
    opensDeath: true,
  };
}

/** It serves, but a worker that died is not back: what it could do is missing. */
function halfStrength(model: LiveModel, { models, deaths }: Watched): Alert | null {
  const ready = model.sample.readyWorkers ?? 0;
  if (!isWanted(model) || model.state !== 'ready' || ready >= model.wantedWorkers) return null;
  const away = model.workers.filter(({ state, lastDeath, failure }) => {
    return lastDeath !== null && failure === null && AWAY.has(state);
  });
  const [first] = away;
  if (first === undefined) return null;
  const death = deathOf(first, deaths);
  const diesEarly = death?.during === 'start';
  const why = death === null ? '' : ` Worker ${first.index} died: ${death.how}.`;
  return {
    ...WARNING,
    id: `half-${model.key}`,
    title: `${modelName(model, models)} has ${ready} of ${plural(model.wantedWorkers, 'worker')}`,
    text: `Calls wait longer meanwhile.${why} ${nextStart({ workers: away })}`,
    todo: diesEarly ? DIES_EARLY : '',
    death: diesEarly ? death : null,
  };
}

/** States of a worker that is not back yet. */
const AWAY: ReadonlySet<string> = new Set(['backoff', 'waiting', 'spawning', 'loading', 'initializing']);

function nextStart({ workers }: Pick<LiveModel, 'workers'>): string {
  const starting = workers.filter(({ pid }) => pid !== null).length;
  if (starting > 0) return `${plural(starting, 'worker')} ${starting === 1 ? 'is' : 'are'} starting.`;
  const pauses = workers.flatMap(({ retryInMs }) => (retryInMs === null ? [] : [retryInMs]));
  if (pauses.length > 0) return `The next start is in ${age(Math.min(...pauses))}.`;
  const waits = workers.find(({ waitsFor }) => waitsFor !== null)?.waitsFor ?? 'its turn to start';
  return `The next one waits for ${waits}.`;
}

function fullQueue({ key, name, queue: { waiting: queued, arriving, maxCalls } }: LiveModel): Alert | null {
  const waiting = queued + arriving;
  if (waiting < FULL * maxCalls) return null;
  return {
    ...WARNING,
    id: `queue-${key}`,
    title: `The queue of ${name} is nearly full`,
    text: `${waiting} of ${maxCalls} places are taken; beyond them calls get 503.`,
    todo: 'Add workers, or batch calls with --batch-size.',
  };
}

function frozen({ key, name, workers }: LiveModel): Alert[] {
  return workers
    .filter(({ state }) => state === 'frozen')
    .map(({ index, pid }) => ({
      ...WARNING,
      id: `frozen-${key}-${index}`,
      title: `Worker ${index} of ${name} is frozen`,
      text: 'A signal (SIGSTOP) has stopped its process; it gets no calls.',
      todo: pid === null ? '' : `kill -CONT ${pid} lets it go on.`,
    }));
}

/** The last death of a model whose workers are well again; those of a model without workers are told with it. */
function died(model: LiveModel, { at, models, deaths }: Watched): Alert | null {
  if (areAllOut(model) || model.state === 'unhealthy') return null;
  const own = deaths.filter((death) => death.key === model.key && at - death.at < DEATH_SHOWN_MS);
  const last = own.at(-1);
  if (last === undefined) return null;
  const others = own.length === 1 ? '' : ` ${own.length} died in the last five minutes.`;
  return {
    ...WARNING,
    id: `died-${model.key}`,
    title: `Worker ${last.worker} of ${modelName(model, models)} died: ${last.how}`,
    text: `${age(at - last.at)} ago. ${deathText(last)}${others}`,
    death: last,
  };
}

function deathOf({ lastDeath }: LiveWorker, deaths: readonly LiveDeath[]): LiveDeath | null {
  return deaths.find(({ id }) => id === lastDeath) ?? null;
}
