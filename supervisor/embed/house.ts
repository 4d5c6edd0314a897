/**
 * The house of all models that a program, or a thread of it, has as functions: one guard, one placement, one budget of memory.
 * It opens with the first function and closes with the last. It is a guest: it keeps the program alive only while a call, a
 * start or a close is pending, prints nothing unasked, and its workers die with the program.
 */
import { EventEmitter } from 'node:events';
import { ServeError, asCallers, configError, describeThrown, httpStatus } from '../../protocol/errors.js';
import { V8_VERSION } from '../../protocol/values/v8-values.js';
import type { Hello, LoadedInfo } from '../../protocol/wire/messages.js';
import { FunctionCalls } from '../functions/function-calls.js';
import type { FunctionEvents } from '../functions/function-types.js';
import { openJobStore } from '../jobs/open-job-store.js';
import { availableCores } from '../machine/host-figures.js';
import { becomeGuest } from '../machine/guest.js';
import { CallCounts } from '../metrics/call-counts.js';
import { HOUSE_METRICS } from '../metrics/house-metrics.js';
import { ServerMetrics } from '../metrics/server-metrics.js';
import type { ModelEvent } from '../models/model-resources.js';
import type { Log } from '../observe/log.js';
import { resolveOptions, withDefaults, type OptionSource } from '../options/resolve.js';
import { IN_MEMORY } from '../options/value-forms.js';
import { findDevices, planBudgets } from '../plan/plan-devices.js';
import type { WorkerProgram } from '../runtimes/runtime.js';
import { Closing } from '../server/host/closing.js';
import { ModelHost, type HostPlan, type JobAnswers } from '../server/host/model-host.js';
import { refuseOther, type GivenFunction } from './given.js';
import { houseLog, type GivenLog, FunctionPrints, type Prints } from './house-log.js';

/** A model of the house. */
export interface Resident {
  readonly prints: Prints | null;
  /** Null if it has none, or it threw. */
  log: GivenLog | null;
  readonly events: EventEmitter<FunctionEvents>;
  readonly metrics: ServerMetrics;
}

export class House {
  readonly plan: HostPlan;
  readonly host: ModelHost;
  readonly calls = new FunctionCalls((...ended) => this.#counts.functionEnded(...ended));
  /** By the names of their models. */
  readonly residents: Map<string, Resident>;
  readonly #counts = new CallCounts();
  readonly #log: Log;
  readonly #closing: Closing;

  private constructor(
    plan: HostPlan,
    jobStore: Awaited<ReturnType<typeof openJobStore>>,
    residents: Map<string, Resident>,
    log: Log,
  ) {
    this.plan = plan;
    this.residents = residents;
    this.#log = log;
    this.#closing = new Closing((thrown) => log.error(describeThrown(thrown).message));
    this.#closing.onClose(() => this.calls.hold.close());
    const surroundings = {
      log,
      relay: new FunctionPrints((model) => this.residents.get(model)?.prints ?? process.stderr),
      attributePrints: false,
      startReporter: {
        pauseMs: () => SLOW_START_MS,
        report: (text: string, model: string) => log.info({ model }, text),
        end: () => {},
      },
      checkApp,
    };
    this.host = new ModelHost(plan, jobStore, surroundings, this.#closing, NO_JOBS, () => {});
    this.host.served.observers.push({
      told: (model, event) => {
        const resident = this.residents.get(model.spec.name);
        if (resident === undefined) return;
        resident.metrics.told(model, event);
        queueMicrotask(() => tell(resident.events, event)); // what a listener throws is the program's
      },
    });
  }

  /** Gives a model of this name what it has in the house, until it leaves. */
  settle(name: string, { prints, log }: GivenFunction): Resident {
    const { registry } = this.host.served;
    const describe = (): ReturnType<typeof registry.describe> =>
      registry.describe().filter(({ model: { spec } }) => spec.name === name);
    const facts = { models: { describe }, unsent: null, memory: null, calls: this.#counts };
    const onProblem = (problem: string): void => this.#log.warn({ model: name }, problem);
    const metrics = new ServerMetrics(facts, null, onProblem, OF_MODELS);
    const resident = { prints, log, events: new EventEmitter<FunctionEvents>(), metrics };
    this.residents.set(name, resident);
    return resident;
  }

  static async open(given: OptionSource): Promise<House> {
    const resolved = withDefaults(resolveOptions([given]), { spares: 0 });
    becomeGuest();
    const { options } = resolved;
    // A core is left to the program, whose loop must turn while workers compute.
    const { devices, problems } = await findDevices([options], undefined, Math.max(1, availableCores() - 1));
    const residents = new Map<string, Resident>();
    const log = houseLog(residents);
    for (const problem of problems) log.warn(problem);
    const plan: HostPlan = {
      models: [],
      store: { reportTo() {}, close() {} },
      budgets: planBudgets(options),
      isMmsMode: true, // models come and go
      resolved,
      devices,
      metrics: null,
    };
    const jobStore = await openJobStore({ place: IN_MEMORY, retentionMs: null, maxBytes: null, cwd: '' });
    return new House(plan, jobStore, residents, log);
  }

  close(): Promise<void> {
    return this.#closing.close();
  }
}

/** The metrics of single models: the others are those of a server. */
const OF_MODELS = HOUSE_METRICS.filter(({ labels }) => labels[0] === 'model');

function tell(events: EventEmitter<FunctionEvents>, event: ModelEvent): void {
  if (event.type === 'ready') events.emit('ready', { worker: event.worker, startMs: event.startMs });
  else if (event.type === 'standstill') events.emit('failing', asCallers(event.standstill.error, false));
  else if (event.type === 'died' && !event.death.wanted) {
    const { pid, how } = event.death;
    events.emit('death', { worker: event.slot.index, pid, how });
  }
}

const SLOW_START_MS = 60_000;

/** The present house, and the number of functions in it. */
let current: { readonly house: Promise<House>; readonly options: OptionSource; functions: number } | null =
  null;

/** Enters the house, which opens for the first function. `leave` closes it behind the last one. @throws SERVE_CONFIG */
export async function enterHouse(
  options: OptionSource,
): Promise<{ readonly house: House; leave(): Promise<void> }> {
  if (current !== null) refuseOther(current.options, options);
  const entered = (current ??= { house: House.open(options), options, functions: 0 });
  entered.functions += 1;
  const leave = async (): Promise<void> => {
    entered.functions -= 1;
    if (entered.functions > 0) return;
    if (current === entered) current = null;
    await (await entered.house).close();
  };
  try {
    return { house: await entered.house, leave };
  } catch (thrown) {
    entered.functions -= 1;
    if (current === entered) current = null;
    throw thrown;
  }
}

/** @throws SERVE_CONFIG for an app whose calls no program can make */
function checkApp({ api }: LoadedInfo, program: WorkerProgram, { runtime, values }: Hello): void {
  if (api === 'mms')
    throw configError(
      'This app is a custom service of Multi Model Server, whose items are bytes of HTTP: serve it with serve(), or export `inference`.',
    );
  if (program.values !== undefined || values === V8_VERSION) return;
  throw configError(
    `The worker runs in another Node: the V8 of ${runtime} writes values of version ${values}, that of this program (node ${process.version}) of version ${V8_VERSION}.`,
  );
}

/** No call of a function is a job. */
const NO_JOBS: JobAnswers = {
  statusOf: ({ code }: ServeError) => httpStatus(code),
  onHeldBytes() {},
  onEnded() {},
  webhookOf: () => null,
  onRetry() {},
  onNotKept() {},
  onLosable() {},
  onStranded() {},
  onStoreAway() {},
  onStoreWell() {},
  onStoreWarning() {},
};
