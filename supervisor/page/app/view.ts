import { useEffect, useState } from 'preact/hooks';
import { addressOf, type Address } from './address.js';

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
