/** Kinds of states; each has a sign and a colour of its own, so that none depends on its colour. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'off';

export const SIGNS: Readonly<Record<Tone, string>> = { good: '●', busy: '◐', warn: '◆', bad: '▲', off: '○' };
