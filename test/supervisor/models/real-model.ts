/** Runs a model with real workers without a server: calls go straight to its dispatcher. */
import type { TestContext } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import type { ReplyHead } from '../../../protocol/wire/messages.js';
import { Call, type CallMessage, type Sink } from '../../../supervisor/dispatch/call.js';
import { Devices } from '../../../supervisor/machine/placement.js';
import type { Gpu } from '../../../supervisor/machine/nvidia-smi.js';
import { ManagedModel } from '../../../supervisor/models/model.js';
import type { ModelEvent, ServerResources } from '../../../supervisor/models/model-resources.js';
import type { ModelSpec } from '../../../supervisor/models/model-spec.js';
import { createLog } from '../../../supervisor/observe/log.js';
import { OutputRelay } from '../../../supervisor/observe/output-relay.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';
import { resolveOptions } from '../../../supervisor/options/resolve.js';
import { OrphanGuard } from '../../../supervisor/processes/orphan-guard.js';
import { prepareProgram } from '../../../supervisor/runtimes/index.js';
import { NO_FEED } from '../../../supervisor/dispatch/job-feed.js';
import { ByteBudget } from '../../../supervisor/dispatch/arrivals.js';
import { SpareProcesses } from '../../../supervisor/processes/spare-processes.js';
import { SpawnGate } from '../../../supervisor/slots/spawn-gate.js';
import type { RetireLimits } from '../../../supervisor/processes/worker-listener.js';
import { PassThrough } from 'node:stream';
import { eventually } from '../../helpers/server.js';

export const LIMITS: RetireLimits = { finishMs: 60_000, graceMs: 60_000 };

export interface RealModelOptions {
  readonly options?: Readonly<Record<string, unknown>>;
  readonly gpus?: readonly Gpu[];
  /** Shared by the models of one test. */
  readonly devices?: Devices;
  readonly gate?: SpawnGate;
  /** Parts that take the place of the usual ones. */
  readonly resources?: Partial<ServerResources>;
  readonly tell?: (event: ModelEvent) => void;
}

/** The spec of a model with this app. */
export async function specOf(
  app: string,
  options: Readonly<Record<string, unknown>> = {},
): Promise<ModelSpec> {
  const facts = { name: 'model', version: '1', app, appPlace: '', service: null };
  const source = { values: options, where: (name: string) => name, numbersAreMs: true } as const;
  const resolved = resolveOptions([source]);
  const setting = { resolved, startFolder: process.cwd(), isUnpacked: false, env: process.env };
  const program = await prepareProgram({ ...facts, workerCommand: null }, setting);
  return { ...facts, url: app, program, resolved };
}

/** A model without workers. It is killed when the test ends. */
export async function realModel(
  t: TestContext,
  app: string,
  given: RealModelOptions = {},
): Promise<RealModel> {
  return new RealModel(t, await specOf(app, given.options), given);
}

export class RealModel {
  readonly model: ManagedModel;
  readonly devices: Devices;
  /** Each time that all its slots were latched or failing. */
  readonly stops: string[] = [];
  #log = '';
  #calls = 0;

  constructor(t: TestContext, spec: ModelSpec, given: RealModelOptions) {
    const output = new PassThrough();
    output.on('data', (chunk: Buffer) => (this.#log += chunk.toString()));
    const writer = Object.assign(output, {
      lineOf: null,
      statusLine: null,
      writeLines: (lines: string) => output.write(lines),
    }) as unknown as OutputWriter;
    const guard = given.resources?.guard ?? new OrphanGuard(() => {});
    const { gpus = [] } = given;
    this.devices =
      given.devices ?? new Devices({ found: gpus, result: 'a test', inheritedMask: undefined, cores: 4 });
    this.model = new ManagedModel(
      spec,
      {
        devices: this.devices,
        gate: given.gate ?? new SpawnGate(8),
        guard,
        memory: null,
        spares: new SpareProcesses({ mostEach: 0, guard, log: createLog('text', 'debug', writer) }),
        relay: new OutputRelay('text', () => this.devices.slots, { stdout: writer, stderr: writer }),
        log: createLog('text', 'debug', writer),
        webhooks: { send: () => false },
        jobs: { openFeed: () => NO_FEED },
        startReporter: { pauseMs: () => 1000, report: () => {}, end: () => {} },
        attributePrints: false,
        budget: new ByteBudget(1e8),
        sendAhead: undefined,
        retireLimits: LIMITS,
        measuresLoad: false,
        watch: false,
        maxOutputBytes: 1e6,
        withheldEnv: null,
        labelOf: () => '',
        isDefault: () => true,
        ...given.resources,
      },
      (event) => {
        if (event.type === 'standstill') this.stops.push(event.standstill.state);
        given.tell?.(event);
      },
    );
    t.after(() => {
      this.model.dispatcher.close();
      this.model.killAll();
      guard.close();
    });
  }

  /** Everything that the model and its workers have printed. */
  get log(): string {
    return this.#log;
  }

  get pids(): number[] {
    return this.model.crew.all.flatMap(({ worker }) => worker?.pid ?? []);
  }

  /** Resolves with the answer of a call with this input; rejects with its ServeError. */
  call(input: unknown, route = '/'): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const answer = (_call: Call, _head: ReplyHead, pieces: Buffer[]): void =>
        resolve(JSON.parse(Buffer.concat(pieces).toString()));
      const sink = {
        reply: answer,
        head() {},
        chunk() {},
        end() {},
        fail: (_call: Call, error: ServeError) => reject(error),
      };
      const requestId = `call ${(this.#calls += 1)}`;
      this.submit({ route, path: route, requestId }, Buffer.from(JSON.stringify(input)), sink);
    });
  }

  /** Admits and submits a call. */
  submit(call: Partial<CallMessage>, body: Buffer, sink: Sink): void {
    const times = { acceptedAtMs: performance.now(), deadlineAtMs: null };
    const admission = this.model.dispatcher.admit(0);
    const whole: CallMessage = { ...CALL, bodyBytes: body.length, ...call };
    this.model.dispatcher.submit(new Call(whole, [body], times, sink), admission);
  }

  /** Resolves once the condition is true. */
  until(isTrue: (model: ManagedModel) => boolean): Promise<void> {
    return eventually(
      () => isTrue(this.model),
      60_000,
      () => `${this.model.crew.all.map(({ state }) => state.name).join(', ')}\n${this.#log}`,
    );
  }
}

const CALL: CallMessage = {
  id: 0,
  model: 'model',
  version: '1',
  client: '127.0.0.1',
  statusOf: () => 500,
  bodyBytes: 0,
  requestId: '',
  route: '/',
  path: '/',
  query: '',
  format: 'auto',
  contentType: 'application/json',
  accept: '',
  deadlineMs: null,
  headers: '',
  method: 'POST',
  params: '',
  asciiJson: false,
  answer: 'auto',
  dialectParams: '',
};
