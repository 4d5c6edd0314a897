/** The page's own address names its view, and what is asked of it. */
import { useEffect, useState } from 'preact/hooks';

export type View = 'try' | 'watch' | 'logs';

export interface Address {
  readonly view: View;
  /** The parameters for the view, such as `request` for the logs. */
  readonly wishes: URLSearchParams;
}

export function addressOf(hash: string): Address {
  const [name, query = ''] = hash.slice(1).split('?');
  return { view: name === 'watch' || name === 'logs' ? name : 'try', wishes: new URLSearchParams(query) };
}

/** The address of the logs, of one call or one worker. */
export function logsAddress(wishes: Readonly<Record<string, string>>): string {
  return `#logs?${new URLSearchParams(wishes).toString()}`;
}

/** The view that the address names, so that it can be linked to, and the browser's way back works. */
export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listener = (): void => setHash(location.hash);
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  }, []);
  return addressOf(hash);
}
