/** Statements by which the operator adds and changes hosts. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { Host } from './host.ts';

/** Adds a host, unless its name is taken. The parameters are the columns in order. */
export const ADD_HOST = statement(Host.columns)`
  insert into host (name, region_code, kind, driver, service_code, vcpus, memory_mb, disk_gb, vcpu_overcommit,
    bmc_protocol, bmc_address, bmc_user, bmc_password, bmc_certificate, mac, disks, firmware, boot_network_isolated)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, coalesce($16::text[], '{}'), $17,
    coalesce($18::boolean, false))
  on conflict do nothing returning ${columnsOf(Host)}`;
/**
 * Changes a host, unless its machines have claimed more than that. Null keeps a value, except that a new BMC replaces the
 * certificate, too. $1 name, $2 vCPUs, $3 memory, $4 disk, $5 overcommit, $6 to $14 the columns from bmc_protocol to
 * boot_network_isolated.
 */
export const UPDATE_HOST = statement(Host.columns)`
  update host set vcpus = coalesce($2, vcpus), memory_mb = coalesce($3, memory_mb), disk_gb = coalesce($4, disk_gb),
    vcpu_overcommit = coalesce($5, vcpu_overcommit), bmc_protocol = coalesce($6, bmc_protocol),
    bmc_address = coalesce($7, bmc_address), bmc_user = coalesce($8, bmc_user),
    bmc_password = coalesce($9, bmc_password), bmc_certificate = case when $6::text is null then bmc_certificate else $10 end,
    mac = coalesce($11, mac), disks = coalesce($12, disks), firmware = coalesce($13, firmware),
    boot_network_isolated = coalesce($14, boot_network_isolated), revision = revision + 1, updated_at = now()
  where name = $1 and (kind = 'DEDICATED' or claimed_vcpus <= coalesce($2, vcpus) * coalesce($5, vcpu_overcommit)
    and claimed_memory_mb <= coalesce($3, memory_mb) and claimed_disk_gb <= coalesce($4, disk_gb))
  returning ${columnsOf(Host)}`;

/** One machine or deployment that keeps a host from being removed. A retired deployment does not. $1 host. */
export const FIND_OCCUPANT = statement({ orderNumber: column.text() })`
  select order_number from placement where host = $1
  union all select order_number from deployment where box = $1 and state <> 'RETIRED' limit 1`;
/** The address of a controller without its scheme and IPMI's own port, so that one controller has one form. */
const placeSql = (address: string) => `regexp_replace(${address}, '^https?://|:623$', '')`;
/** Another host with the same network card or the same controller. $1 host, $2 MAC address, $3 address of the BMC. */
export const FIND_HOST_CONFLICT = statement({ name: column.text(), field: column.text() })`
  select name, case when mac = $2 then 'mac' else 'bmc.address' end as field from host
    where name <> $1 and (mac = $2 or ${placeSql('bmc_address')} = ${placeSql('$3')})
  union all select box, 'mac' from deployment where box <> $1 and mac = $2 limit 1`;
