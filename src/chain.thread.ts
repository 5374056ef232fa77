/** The entry of the thread that verifies long chains of provenance, a Piscina task for each. */

import { type ProvenanceEntry, verifyProvenance } from './core/continuity/provenance.js';

export interface Chain {
  /** JSON array of its entries. */
  readonly text: string;
  /** Public keys by their ids. */
  readonly trusted: readonly (readonly [id: string, publicKey: string])[];
  readonly expectedHead: string | undefined;
}

/** @returns the `ProvenanceVerdict` as JSON */
export default function verify({ text, trusted, expectedHead }: Chain): string {
  const chain = JSON.parse(text) as ProvenanceEntry[];
  return JSON.stringify(verifyProvenance(chain, new Map(trusted), expectedHead));
}
