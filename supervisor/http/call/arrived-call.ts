import type { Admission } from '../../dispatch/arrivals.js';
import type { Body } from '../socket/body-memory.js';
import type { OpenedBody } from './call-plan.js';
import type { RoutedCall } from './route-check.js';

/** A call that is ready to be run by a worker. */
export interface ArrivedCall {
  readonly routed: RoutedCall;
  readonly body: Body;
  /** The input and control fields that the dialect read from the body; null if the body is the input. */
  readonly opened: OpenedBody | null;
  readonly place: Admission;
}
