import { useEffect, useState } from 'preact/hooks';

export type View = 'try' | 'watch';

/** The view that the address names, so that it can be linked to, and the browser's way back works. */
export function useView(): View {
  const [view, setView] = useState(viewOfAddress);
  useEffect(() => {
    const listener = (): void => setView(viewOfAddress());
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  }, []);
  return view;
}

function viewOfAddress(): View {
  return location.hash === '#watch' ? 'watch' : 'try';
}
