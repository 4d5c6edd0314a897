/**
 * The house of all models that a program, or a thread of it, has as functions: one guard, one placement, one budget of memory.
 * It opens with the first function and closes with the last. It is a guest: it keeps the program alive only while a call, a
 * start or a close is pending, prints nothing unasked, and its workers die with the program.
 */
import type { EventEmitter } from 'node:events';
import { ServeError, configError, describeThrown, httpStatus } from '../../protocol/errors.js';
import { V8_VERSION } from '../../protocol/values/v8-values.js';
import type { LoadedInfo } from '../../protocol/wire/messages.js';
import { FunctionCalls } from '../functions/function-calls.js';
import { asCallers } from '../functions/function-sink.js';
import type { FunctionEvents } from '../functions/function-types.js';
import { openJobStore } from '../jobs/open-job-store.js';
import { availableCores } from '../machine/cores.js';
import { becomeGuest } from '../machine/guest.js';
import type { ModelEvent } from '../models/model-resources.js';
import { resolveOptions, withDefaults, type OptionSource } from '../options/resolve.js';
import { IN_MEMORY } from '../options/value-forms.js';
import { findDevices, planBudgets } from '../plan/plan-devices.js';
import { Closing } from '../server/host/closing.js';
import { ModelHost, type HostPlan, type JobAnswers } from '../server/host/model-host.js';
import { refuseOther } from './given.js';
import { HouseLog } from './house-log.js';
import { FunctionPrints, type Prints } from './prints.js';

/** A model of the house. */
export interface Resident {
  readonly prints: Prints | null;
  readonly events: EventEmitter<FunctionEvents>;
}

export class House {
  readonly plan: HostPlan;
  readonly host: ModelHost;
  readonly calls = new FunctionCalls();
  readonly logs: HouseLog;
  /** By the names of their models. */
  readonly residents = new Map<string, Resident>();
  readonly #closing: Closing;

  private constructor(plan: HostPlan, jobStore: Awaited<ReturnType<typeof openJobStore>>, logs: HouseLog) {
    this.plan = plan;
    this.logs = logs;
    const { log } = logs;
    this.#closing = new Closing((thrown) => log.error(describeThrown(thrown).message));
    this.#closing.onClose(() => this.calls.hold.close());
    const surroundings = {
      log,
      relay: new FunctionPrints((model) => this.residents.get(model)?.prints ?? process.stderr),
      attributePrints: false,
      startReporter: {
        pauseMs: () => SLOW_START_MS,
        report: (text: string) => log.info(text),
        end: () => {},
      },
      checkApp,
    };
    this.host = new ModelHost(plan, jobStore, surroundings, this.#closing, NO_JOBS, () => {});
    this.host.served.observers.push({
      told: ({ spec }, event) => {
        const events = this.residents.get(spec.name)?.events;
        if (events !== undefined) queueMicrotask(() => tell(events, event)); // what a listener throws is the program's
      },
    });
  }

  static async open(given: OptionSource): Promise<House> {
    const resolved = withDefaults(resolveOptions([given]), { spares: 0 });
    becomeGuest();
    const { options } = resolved;
    // A core is left to the program, whose loop must turn while workers compute.
    const { devices, problems } = await findDevices([options], undefined, Math.max(1, availableCores() - 1));
    const logs = new HouseLog();
    for (const problem of problems) logs.log.warn(problem);
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
    return new House(plan, jobStore, logs);
  }

  close(): Promise<void> {
    return this.#closing.close();
  }
}

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
function checkApp({ api }: LoadedInfo, values: number | undefined): void {
  if (api === 'mms')
    throw configError(
      'This app is a custom service of Multi Model Server, whose items are bytes of HTTP: serve it with serve(), or export `inference`.',
    );
  if (values === V8_VERSION) return;
  if (values === undefined)
    throw configError('Only apps for Node and .onnx models can be functions; serve this one with serve().');
  throw configError(
    `The worker runs in another Node: its V8 writes values of version ${values}, this one (node ${process.version}) of version ${V8_VERSION}.`,
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
