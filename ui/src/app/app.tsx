/** The root component: providers that every page relies on. */

import { QueryClientProvider } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useLocation } from 'wouter';
import { isUnauthenticated } from '../api/engine-error.ts';
import { LiveProvider } from '../api/live.tsx';
import { ToastProvider } from '../components/toasts.tsx';
import { FailureBoundary } from './failure-boundary.tsx';
import { createQueries, lookWhoItIs, signInQueries } from './queries.ts';
import { Routes } from './routes.tsx';
import { Shell } from './shell.tsx';
import { Shortcuts } from './shortcuts.tsx';
import { SignIn } from './sign-in.tsx';

export function App() {
  return (
    <QueryClientProvider client={signInQueries}>
      <SignIn>
        <OwnQueries>
          <ToastProvider>
            <LiveProvider onUnknown={lookWhoItIs}>
              <Shell>
                <Content />
              </Shell>
            </LiveProvider>
          </ToastProvider>
        </OwnQueries>
      </SignIn>
    </QueryClientProvider>
  );
}

/** One query cache per tenant and key, so that data of one is never shown to another. */
function OwnQueries({ children }: { children: ReactNode }) {
  // A key that is rejected later was revoked or has expired: check it again at the sign-in.
  const [queries] = useState(() =>
    createQueries((error) => {
      if (isUnauthenticated(error)) lookWhoItIs();
    }),
  );
  return <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
}

function Content() {
  const [place] = useLocation();
  return (
    <>
      <FailureBoundary place={place}>
        <Routes />
      </FailureBoundary>
      <Shortcuts />
    </>
  );
}
