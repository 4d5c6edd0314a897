import { useEffect, useRef, useState } from 'preact/hooks';
import type { CallRequest } from './call-request.js';
import { sendCall, type Answer } from './send-call.js';

export interface UsedCall {
  /** Null until the first call. */
  readonly answer: Answer | null;
  readonly isRunning: boolean;
  send(request: CallRequest, payload: BodyInit | null): void;
  cancel(): void;
}

/** One call at a time; it is cancelled when its panel is left. */
export function useCall(): UsedCall {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const isRunning = answer?.phase === 'sending' || answer?.phase === 'receiving';
  return {
    answer,
    isRunning,
    send: (request, payload) => {
      abort.current?.abort();
      const own = new AbortController();
      abort.current = own;
      void sendCall(request, payload, own.signal, (next) => {
        if (abort.current === own) setAnswer(next);
      });
    },
    cancel: () => abort.current?.abort(),
  };
}
