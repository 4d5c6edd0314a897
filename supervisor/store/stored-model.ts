/** What a model store is asked, and what it answers. */
import { RUNTIME_NAMES } from '../runtimes/index.js';
import type { ServiceSource } from '../runtimes/runtime.js';

/** How somebody asks for a model of the store. */
export interface StoreQuery {
  /** Path in the store, or a web address, as it was given. */
  readonly url: string;
  /** As the person names it; what is there may say its name itself. */
  readonly name?: string;
  /** A manifest need name nothing: the name of the file will do. */
  readonly mayGoUnnamed?: boolean;
  /** `module`, `module:function` or `module:Class`; empty: found by rule. */
  readonly handler?: string;
  /** What runs it, as the person says; empty: found by the handler's file. */
  readonly runtime?: string;
  /** Whoever asks has left: what is still to be downloaded is not wanted any more. */
  readonly signal?: AbortSignal;
}

/** What a person, or a manifest, may say that runs a model; empty: nothing. */
export const RUNTIMES: readonly string[] = ['', ...RUNTIME_NAMES];

/** A model that was found, as it can be planned and registered. */
export interface StoredModel {
  /** As it was asked for. */
  readonly url: string;
  /** As the person names it, else its manifest, else its file. */
  readonly name: string;
  readonly version: string;
  /** Absolute path of the file that its workers load. */
  readonly app: string;
  /** Null: what the file exports says what it is. */
  readonly service: ServiceSource | null;
  /** Real path of the folder, or of the single file, that people change when they work on the model; null for an archive. */
  readonly place: string | null;
  readonly isFolder: boolean;
  /** Its files stay where they are until then. Called once nobody uses them any more; further calls do nothing. */
  readonly release: Release;
}

/** Gives files back that were lent. */
export type Release = () => void;

/** For files that are nobody's to remove. */
export const NOTHING_LENT: Release = () => {};

/** What comes of `use`, which takes the files over; if it fails, they are given back. */
export async function releasedOnFailure<T>(release: Release, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (thrown) {
    release();
    throw thrown;
  }
}
