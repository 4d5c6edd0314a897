/** Finds the dialect that a request belongs to. */
import { ServeError } from '../../../protocol/errors.js';
import type { RequestContext } from '../request/request-context.js';
import type { CallPlan, Dialect, NamedPlan, Operation } from './dialect.js';

interface Guess {
  readonly dialect: Dialect;
  readonly operation: Operation;
}

/**
 * Returns the operation of the first dialect that claims the request, else of the first that has a guess; null if there
 * is neither. Sets the context's dialect.
 */
export function firstClaim(context: RequestContext, inOrder: readonly Dialect[]): Operation | null {
  let guess: Guess | null = null;
  for (const dialect of inOrder) {
    const operation = claimOf(context, dialect);
    if (operation === null) continue;
    if (operation.isGuess === true) {
      guess ??= { dialect, operation };
      continue;
    }
    context.dialect = dialect;
    return guess === null ? operation : unlessOwnRoute(operation, guess);
  }
  if (guess !== null) context.dialect = guess.dialect;
  return guess?.operation ?? null;
}

/** A ServeError that a claim throws becomes the answer: the request names something that does not exist. */
function claimOf(context: RequestContext, dialect: Dialect): Operation | null {
  try {
    return dialect.claim(context, context.backend.models);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return { auth: 'call', counts: true, methods: '', act: { refuse: thrown } };
  }
}

/**
 * Lets the call that was guessed take precedence over the operation: of an app that is not loaded yet, the path may be a
 * route. `call/find-route.ts` decides once the routes are known.
 */
function unlessOwnRoute(operation: Operation, { dialect, operation: guessed }: Guess): Operation {
  const { act } = operation;
  const { act: plan, auth, counts } = guessed;
  if (!('target' in plan) || !isNamed(plan) || auth !== operation.auth) return operation;
  const own = { style: dialect, plan };
  if ('target' in act) return { ...operation, act: { ...act, own } };
  if ('refuse' in act) return { ...operation, counts, act: { ...plan, noRoute: act.refuse, own } };
  return operation;
}

function isNamed(plan: CallPlan): plan is NamedPlan {
  return typeof plan.target === 'object' && typeof plan.target.route === 'string';
}
