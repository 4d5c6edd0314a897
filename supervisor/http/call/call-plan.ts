/** What a dialect says of a call, before anything is read of its body. The core follows it: see `answer-call.ts`. */
import type { Format } from '../../../protocol/messages.js';
import type { KeptJob } from '../../jobs/kept-jobs.js';
import type { Model } from '../../models/model.js';
import type { Body } from '../socket/body-memory.js';
import type { Ask } from './ask.js';

/** Who is called. */
export interface Target {
  readonly model: Model;
  /** Path of the app's route. It need not be known yet: the call waits until the app is loaded. */
  readonly route: string;
}

export interface CallPlan {
  /**
   * The target, or a function that finds it in the body's beginning, which is asked again as more of it arrives. With
   * `whole` (the body has ended, or its first 64 KiB are there) it must decide. It may throw a ServeError.
   */
  readonly target: Target | ((prefix: Buffer, whole: boolean) => Target | 'more');
  /** How the worker is to read the body. */
  readonly format: Format;
  /** What the path says besides its route, for the app. */
  readonly params?: Readonly<Record<string, string>>;
  /** The client reads JSON only if it is pure ASCII. */
  readonly asciiJson?: boolean;
  /** Takes the model's input out of a body that wraps it. Without it the whole body is the input. */
  readonly open?: (ask: Ask, body: Body) => Promise<OpenedBody>;
}

/** What stood in a body that wraps the model's input. */
export interface OpenedBody {
  readonly input: Buffer;
  readonly contentType: string;
  /** The key, if the body had one. */
  readonly key: string | null;
  /** The client's id for this request, if the body had one. Headers count first. */
  readonly requestId: string | null;
  /** The call outlives its client, whom this answers now or later. */
  readonly answerKept: (ask: Ask, kept: KeptJob) => void;
}
