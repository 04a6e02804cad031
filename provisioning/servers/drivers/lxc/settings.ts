/** The driver from the operator's settings: addresses as text, certificates in files or as text. */
import { readFileSync } from 'node:fs';
import { endpointOf, type Tls } from './endpoint.ts';
import { LxcDriver, type LxcOptions } from './lxc.ts';
import { probeByCommand } from './ssh-proof.ts';

interface Common extends Omit<LxcOptions, 'endpoints' | 'probe'> {
  /** `unix:/path` or `https://host:8443`. */
  endpoints: string[];
  /** Absent: the worker connects to the machines. */
  probeCommand: string | undefined;
}

interface Settings extends Common {
  /** PEM files; for https endpoints. */
  tls: { certificateFile: string; keyFile: string; serverCertificateFile: string } | undefined;
}

/** @throws Error if a file cannot be read */
export function lxcDriver({ tls: files, ...options }: Settings): LxcDriver {
  const read = (file: string) => readFileSync(file, 'utf8');
  const tls = files && {
    certificate: read(files.certificateFile),
    key: read(files.keyFile),
    serverCertificate: read(files.serverCertificateFile),
  };
  return lxcDriverBy(options, tls);
}

/** @throws Error without certificates for https, or for a wrong one */
export function lxcDriverBy({ endpoints, probeCommand, ...options }: Common, tls: Tls | undefined): LxcDriver {
  return new LxcDriver({
    ...options,
    endpoints: endpoints.map((text) => endpointOf(text, tls)),
    ...(probeCommand && { probe: probeByCommand(probeCommand) }),
  });
}
