/** Listens to the signals of calls: once to each signal, however many calls it was given to, and no longer than they take. */
export class SharedSignals {
  readonly #calls = new Map<
    AbortSignal,
    { readonly onAborts: Set<() => void>; readonly listener: () => void }
  >();

  /** Calls `onAbort` when the signal is aborted, unless the function returned is called before. The signal is not aborted yet. */
  add(signal: AbortSignal, onAbort: () => void): () => void {
    const { onAborts } = this.#calls.get(signal) ?? this.#listen(signal);
    onAborts.add(onAbort);
    return () => {
      onAborts.delete(onAbort);
      if (onAborts.size === 0) this.#leave(signal);
    };
  }

  #listen(signal: AbortSignal) {
    const onAborts = new Set<() => void>();
    const listener = (): void => {
      for (const onAbort of [...onAborts]) onAbort();
    };
    const shared = { onAborts, listener };
    this.#calls.set(signal, shared);
    signal.addEventListener('abort', listener, { once: true });
    return shared;
  }

  #leave(signal: AbortSignal): void {
    const shared = this.#calls.get(signal);
    if (shared === undefined) return;
    this.#calls.delete(signal);
    signal.removeEventListener('abort', shared.listener);
  }
}
