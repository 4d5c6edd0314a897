/**
 * `supervise()`: a model as a function, without a port. It enters the program's house of models (`house.ts`), adds the model
 * to it and resolves once a worker is ready; its calls enter at the model's dispatcher (`functions/`).
 */
import { ServeError } from '../../protocol/errors.js';
import { notBegun } from '../functions/function-calls.js';
import type { FunctionCallOptions, ModelFunction } from '../functions/function-types.js';
import { startLimit } from '../machine/limit-timer.js';
import type { ModelStatus } from '../models/model-status.js';
import type { ManagedModel } from '../models/model.js';
import type { ModelPlan } from '../models/model-spec.js';
import { FIRST_VERSION, nameOfApp } from '../options/model-name.js';
import { planModel } from '../plan/plan-models.js';
import { retireLimits } from '../processes/worker-stop.js';
import { describeModels } from '../status/snapshot.js';
import { readGiven, type GivenFunction, type SuperviseOptions } from './given.js';
import { enterHouse, type House, type Resident } from './house.js';

/**
 * Starts workers of an app and resolves with its function once one is ready. Rejects with a ServeError: `SERVE_CONFIG` for a
 * wrong option, with nothing started; `SERVE_APP_INVALID` and `SERVE_INIT_FAILED` if the app cannot start.
 */
export async function supervise(app: unknown, options: SuperviseOptions = {}): Promise<ModelFunction> {
  try {
    return await begin(readGiven(app, options));
  } catch (thrown) {
    throw notBegun(thrown);
  }
}

async function begin(given: GivenFunction): Promise<ModelFunction> {
  const { house, leave } = await enterHouse(given.house);
  const { hold } = house.calls;
  const start = async (): Promise<ModelFunction> => {
    const plan = withName(await planOf(given, house), house);
    const resident = house.settle(plan.spec.name, given);
    try {
      return functionOf(house, await startModel(house, plan), resident, leave);
    } catch (thrown) {
      house.residents.delete(plan.spec.name);
      throw thrown;
    }
  };
  try {
    return await hold.during(start());
  } catch (thrown) {
    await hold.during(leave());
    throw thrown;
  }
}

/** @throws SERVE_CONFIG */
function planOf({ app, cwd, model: source }: GivenFunction, { plan }: House): Promise<ModelPlan> {
  const entry = { name: 'model', version: FIRST_VERSION, app, workerCommand: undefined, source };
  return planModel({ ...entry, place: 'supervise()' }, plan.resolved, cwd);
}

/** Names the model as its file, with a number if another one has that name. */
function withName(plan: ModelPlan, { residents }: House): ModelPlan {
  const usual = nameOfApp(plan.spec.app);
  let name = usual;
  for (let i = 2; residents.has(name); i += 1) name = `${usual}-${i}`;
  return { ...plan, spec: { ...plan.spec, name } };
}

/** Resolves once its workers are ready. @throws the reason why one cannot start; the model is removed then */
async function startModel({ host: { served } }: House, plan: ModelPlan): Promise<ManagedModel> {
  const model = await served.add(plan);
  const { spec, crew } = model;
  const { result, error } = await served.start(spec, served.boundsFor('program', spec, {})).settled;
  if (result === 'done' || crew.ready.length > 0) return model;
  if (error === null) throw new ServeError('SERVE_INIT_TIMEOUT');
  const { code, message, detail } = error;
  throw new ServeError(code, [message, detail].filter(Boolean).join(' '), { cause: error, begun: false });
}

function functionOf(
  house: House,
  model: ManagedModel,
  { events, metrics }: Resident,
  leave: () => Promise<void>,
): ModelFunction {
  const { calls, host, residents, plan } = house;
  const { spec } = model;
  let isClosed = false;
  const call = (path: string | null, input: unknown, options?: FunctionCallOptions): Promise<unknown> =>
    isClosed ? Promise.reject(closed(spec.name)) : calls.call(() => model, path, input, options);
  const end = async (): Promise<void> => {
    isClosed = true;
    const limits = retireLimits(plan.resolved.options.drainTimeout);
    const late = startLimit(limits.finishMs, () => model.rejectCalls(closed(spec.name)));
    await host.served.registry.unregister(spec, limits).settled;
    late.stop();
    residents.delete(spec.name);
    await leave();
  };
  const close = (): Promise<void> =>
    isClosed ? Promise.reject(closed(spec.name)) : calls.hold.during(end());
  let status = describe(house, model);
  return Object.assign((input: unknown, options?: FunctionCallOptions) => call(null, input, options), {
    route: (path: string) => (input: unknown, options?: FunctionCallOptions) => call(path, input, options),
    status: () => (status = describe(house, model) ?? status) as ModelStatus,
    metrics: async () => (await metrics.scrape([])).text,
    events,
    close,
    [Symbol.asyncDispose]: async () => {
      if (!isClosed) await close();
    },
  });
}

/** Undefined once it is gone. */
function describe({ host: { served } }: House, { spec }: ManagedModel): ModelStatus | undefined {
  return describeModels(served.registry, true).find(({ name }) => name === spec.name);
}

function closed(name: string): ServeError {
  return new ServeError('SERVE_SHUTTING_DOWN', `The function ${name} is closed.`, { begun: false });
}
