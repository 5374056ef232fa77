/** How the dashboard reads: what a read counts on, and who is asked about a key. */

import { QueryCache, QueryClient } from '@tanstack/react-query';
import { isFinal } from '../api/engine-error.ts';
import { forget } from '../api/session.ts';

const RETRIES = 2;

export const createQueries = (onError?: (error: unknown) => void) =>
  new QueryClient({
    queryCache: new QueryCache({ ...(onError && { onError }) }),
    defaultOptions: {
      queries: {
        retry: (count, error) => count < RETRIES && !isFinal(error),
        staleTime: 1000,
        refetchOnWindowFocus: true,
        // An engine on this machine or in this house is there without the network; and one that is not is found to be away.
        networkMode: 'always',
      },
      // What cannot be sent fails: it is not kept to be sent when nobody expects it any more.
      mutations: { retry: false, networkMode: 'always' },
    },
  });

/** Of whoever has not signed in yet. */
export const signInQueries = createQueries();

/** A key that is refused all of a sudden was revoked, or has expired: the sign-in looks again. */
export function lookWhoItIs(): void {
  void signInQueries.refetchQueries({ queryKey: ['whoami'] });
}

export function signOut(): void {
  // It knows keys by what they are.
  signInQueries.clear();
  forget();
}
