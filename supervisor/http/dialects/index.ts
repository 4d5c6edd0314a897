/**
 * Lists the dialects of each listener in order of precedence, and the one that answers requests which no dialect
 * claims; finds the dialect that a request belongs to.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { PlatformPaths } from '../../options/environment.js';
import type { FindCallPaths } from '../request/call-paths.js';
import type { Listener, RequestContext, MetricsPage } from '../request/request-context.js';
import type { ServedPage } from '../request/served-page.js';
import { isRead } from '../socket/request-facts.js';
import { banana } from './banana.js';
import { cog } from './cog/cog.js';
import type { CallPlan, DefaultDialect, Dialect, NamedTarget, Operation } from './dialect.js';
import { gateway } from './gateway/gateway.js';
import { metricsDialect } from './metrics.js';
import { WHOLE_API } from './mms/describe.js';
import { inferenceDialect, mmsInference } from './mms/inference.js';
import { mmsManagement } from './mms/management.js';
import { mmsStyle } from './mms/answer-style.js';
import { openApiDialect } from './openapi.js';
import { openAi, openAiStyle, rerank } from './openai/openai.js';
import { openInference, openInferenceWithRepository } from './open-inference/open-inference.js';
import { pageDialect } from './web-page/page.js';
import { potassium } from './potassium/potassium.js';
import { kserveV1, vertex } from './predict/predict.js';
import { v1 } from './v1/v1.js';

export interface Dialects {
  /** The first that claims a request gets it; guesses come last. */
  readonly inOrder: readonly Dialect[];
  readonly default: DefaultDialect;
}

/** For clients that call a model by its task, and KServe's. Rerank has a path below `/v2`, which is Open Inference's: it comes first. */
const TASK_DIALECTS: readonly Dialect[] = [kserveV1, openAi, rerank, { ...v1, ...openAiStyle }];

/** The house dialect comes first: a route of the app takes precedence. */
export const MAIN_DIALECTS: Dialects = {
  inOrder: [banana, gateway, potassium, ...TASK_DIALECTS, cog, mmsInference, openInference],
  default: banana,
};

/**
 * For a server with a model store and no app: the house's own paths are there too, with errors in the form of Multi
 * Model Server.
 */
export const MMS_DIALECTS: Dialects = {
  inOrder: [
    withMmsErrors(banana),
    gatewayWithMmsErrors(),
    withMmsErrors(potassium),
    ...TASK_DIALECTS,
    mmsInference,
    openInference,
  ],
  default: mmsInference,
};

function withMmsErrors<D extends Dialect>(dialect: D): D {
  const { fail, errorBody } = mmsStyle;
  return { ...dialect, fail, errorBody };
}

/** The gateway's own clients, which only send `POST`, would take an error in any other form for a success. */
function gatewayWithMmsErrors(): Dialect {
  return {
    ...gateway,
    fail: (error, requestId, context) =>
      (context?.request.method === 'POST' ? gateway : mmsStyle).fail(error, requestId, context),
  };
}

/** The dialects of the management API's own listener. */
export const MANAGEMENT_DIALECTS: Dialects = {
  inOrder: [mmsManagement, openInferenceWithRepository],
  default: mmsManagement,
};

/** Adds the management API to a listener's dialects: managing a model takes precedence over calling it. */
export function withManagement({ inOrder, ...main }: Dialects): Dialects {
  const others = inOrder.map((dialect) => WITH_MANAGEMENT.get(dialect) ?? dialect);
  return { ...main, inOrder: [mmsManagement, ...others] };
}

const inferenceAndManagement = inferenceDialect(WHOLE_API);

/** The dialects that are replaced on a listener with the management API, and their replacements. */
const WITH_MANAGEMENT = new Map<Dialect, Dialect>([
  [mmsInference, inferenceAndManagement],
  [openInference, openInferenceWithRepository],
]);

/**
 * Returns the dialects of each listener; null for a listener that is not opened. `metrics`: null if they are switched off.
 * `page`: null if there is none. `platform`: paths that come before all others. `main`: replaces the dialects of the main
 * listener, for tests.
 */
export function dialectsOf({
  isMmsMode,
  isManagementShared,
  metrics,
  areMetricsOnMain,
  page,
  platform,
  main = isMmsMode ? MMS_DIALECTS : MAIN_DIALECTS,
}: {
  readonly isMmsMode: boolean;
  readonly isManagementShared: boolean;
  readonly metrics: MetricsPage | null;
  readonly areMetricsOnMain: boolean;
  readonly page: ServedPage | null;
  readonly platform: PlatformPaths;
  readonly main: Dialects | undefined;
}): Readonly<Record<Listener, Dialects | null>> {
  const inStyle = <D extends Dialect>(dialect: D): D => (isMmsMode ? withMmsErrors(dialect) : dialect);
  const before = (first: Dialect | null, dialects: Dialects): Dialects =>
    first === null ? dialects : { ...dialects, inOrder: [first, ...dialects.inOrder] };
  const house = metrics === null ? null : inStyle(metricsDialect(metrics));
  const shared = isManagementShared ? withManagement(main) : main;
  const withPage = before(page === null ? null : inStyle(pageDialect(page, isManagementShared)), shared);
  const hasPlatform = platform.health !== null || platform.predict !== null;
  const answering = before(
    hasPlatform ? vertex(platform) : null,
    before(areMetricsOnMain ? house : null, withPage),
  );
  const described = inStyle(openApiDialect(answering.inOrder));
  return {
    main: before(described, answering),
    management: MANAGEMENT_DIALECTS,
    metrics: house === null ? null : { inOrder: [house, openInference], default: house }, // only to word errors below /v2
  };
}

export function callPathsIn(dialects: readonly Dialect[]): FindCallPaths {
  return (called) =>
    dialects.flatMap(({ name, callPaths }) =>
      (callPaths?.(called) ?? []).map(({ path, isDeprecated = false }) => {
        const encoded = path.split('/').map(encodeURIComponent).join('/').replaceAll('%3A', ':');
        return { dialect: name, path: encoded, isDeprecated };
      }),
    );
}

/**
 * Returns the operation of the first dialect that claims the request, else of the first that has a guess, else of the default
 * one; its dialect becomes the context's. A path that cannot be decoded (`isReadable` is false) has the errors of the dialect
 * that owns it.
 */
export function claim(context: RequestContext, dialects: Dialects, isReadable: boolean): Operation {
  const { models } = context.backend;
  const readsPage = !context.isWebSocket && isRead(context.request);
  let claimed: Operation | null = null;
  let guess: Operation | null = null;
  let guesser: Dialect | null = null;
  for (const dialect of isReadable ? dialects.inOrder : []) {
    if (dialect.hasOnlyPages === true && !readsPage) continue;
    let operation: Operation | null;
    try {
      operation = dialect.claim(context, models);
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      operation = { auth: 'call', counts: true, methods: '', act: { refuse: thrown } }; // it names something that does not exist
    }
    if (operation?.isGuess === true) {
      guess ??= operation;
      guesser ??= dialect;
    } else if (operation !== null) {
      context.dialect = dialect;
      claimed = guess === null || guesser === null ? operation : unlessOwnRoute(operation, guess, guesser);
      break;
    }
  }
  if (claimed === null && guesser !== null) context.dialect = guesser;
  if (!isReadable)
    context.dialect = dialects.inOrder.find(({ owns }) => owns?.(context.path)) ?? dialects.default;
  const operation = claimed ?? guess ?? dialects.default.unclaimed(context, models);
  context.counts = operation.counts;
  context.isProbe = operation.auth === 'none' && 'write' in operation.act;
  context.isLogged = operation.isLogged === true;
  return operation;
}

/**
 * Lets the call that was guessed take precedence over the operation: of an app that is not loaded yet, the path may be a
 * route. `call/find-route.ts` decides once the routes are known.
 */
function unlessOwnRoute(operation: Operation, guess: Operation, style: Dialect): Operation {
  const { act: plan, auth, counts } = guess;
  if (!('target' in plan) || !isNamed(plan.target) || auth !== operation.auth) return operation;
  const { act } = operation;
  const own = { style, plan: { ...plan, target: plan.target } };
  if ('target' in act) return { ...operation, act: { ...act, own } };
  if ('refuse' in act) return { ...operation, counts, act: { ...plan, noRoute: act.refuse, own } };
  return operation;
}

function isNamed(target: CallPlan['target']): target is NamedTarget {
  return typeof target === 'object' && typeof target.route === 'string';
}
