package dev.fieldmesh.core.wire

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

/** The body of every answer that is not 200; [code] is a word to branch on. */
@Serializable
data class WireError(val code: String, val message: String, val cure: String? = null)

@Serializable
data class TrialKey(val trial: Int, val attempt: Int)

@Serializable
data class AbortRequest(val trial: Int, val attempt: Int, val reason: String)

/** One acceptance rule; an absent [measured] could not be measured, and fails. */
@Serializable
data class Check(
    val rule: String,
    val node: String? = null,
    val limit: Double,
    val measured: Double? = null,
    val pass: Boolean,
    val detail: String? = null,
)

/** What a person decided about an attempt: accept, repeat, skip or retry; [judged] is the outcome by the rules. */
@Serializable
data class Word(val decision: String, val by: String, val text: String? = null, val judged: String)

/** The outcome of one attempt: accepted, rejected, failed or interrupted. */
@Serializable
data class Verdict(
    val trial: Int,
    val attempt: Int,
    val outcome: String,
    val reason: String? = null,
    val checks: List<Check>? = null,
    @SerialName("final") val isFinal: Boolean,
    val word: Word? = null,
)

@Serializable
data class TrialView(val number: Int, val attempts: List<Verdict>)

/** The present moment, for a person to look at; no record. */
@Serializable
data class Live(
    @SerialName("speed_mps") val speedMps: Double? = null,
    @SerialName("fix_mode") val fixMode: Int,
    @SerialName("throughput_bps") val throughputBps: Double? = null,
    @SerialName("remaining_s") val remainingS: Double? = null,
)

/** The newest record of a spool. */
@Serializable
data class SpoolPosition(val epoch: String, val seq: Long)

/** What a node knows of a run; [version] rises with every change. */
@Serializable
data class CampaignView(
    val version: ULong,
    val run: String,
    val campaign: String,
    val state: String,
    val current: TrialKey? = null,
    val detail: String? = null,
    val trials: List<TrialView>,
    val position: SpoolPosition,
    val live: Live? = null,
    val places: List<Place> = emptyList(),
)

/** Where another node was, [ageMs] before the view was made. */
@Serializable
data class Place(
    val node: String,
    @SerialName("lat_deg") val latDeg: Double,
    @SerialName("lon_deg") val lonDeg: Double,
    @SerialName("age_ms") val ageMs: Double,
)

@Serializable
data class ClockReply(@SerialName("boot_ns") val bootNs: Long, @SerialName("wall_ns") val wallNs: Long)

@Serializable
data class SpoolStatus(
    val newest: SpoolPosition,
    @SerialName("oldest_seq") val oldestSeq: Long,
    @SerialName("used_bytes") val usedBytes: Long,
    @SerialName("quota_bytes") val quotaBytes: Long,
    @SerialName("disk_free_bytes") val diskFreeBytes: Long,
)

@Serializable
data class HostStatus(
    val reached: Boolean,
    val pending: List<String>,
    val failed: List<String>? = null,
    val detail: String? = null,
    val instance: String? = null,
)

/** One need that is not met, with its cure. */
@Serializable
data class Problem(val need: String, val found: String, val cure: String)

@Serializable
data class RestoreReport(val undone: List<String>, val failed: List<String>)

@Serializable
data class NodeStatus(
    val node: String,
    val version: String,
    val kernel: String,
    val arch: String,
    @SerialName("interface") val interfaceName: String,
    @SerialName("interface_up") val interfaceUp: Boolean? = null,
    val mac: String? = null,
    val tools: Map<String, String>,
    @SerialName("congestion_available") val congestionAvailable: List<String>,
    val gps: Gps? = null,
    @SerialName("gps_rate_hz") val gpsRateHz: Double? = null,
    val spool: SpoolStatus,
    val host: HostStatus,
    val run: String? = null,
    val clock: ClockReply,
    val problems: List<Problem>,
    @SerialName("memory_bytes") val memoryBytes: Long,
    val radio: Caps? = null,
)

/** What the radio reports about itself, as far as the app shows it. */
@Serializable
data class Caps(val beside: Beside? = null)

/** The machine's own interface, on whose radio the tested one is made for a run. */
@Serializable
data class Beside(@SerialName("interface") val interfaceName: String)

/**
 * What a person noted: a mark ("bus passed"), or a decision on a trial
 * (accept, repeat, skip). The node makes a record of it, one for each [id].
 */
@Serializable
data class Note(
    val id: String,
    val note: String,
    val text: String,
    @SerialName("age_ms") val ageMs: Double,
    val trial: Int? = null,
    val attempt: Int? = null,
    @SerialName("lat_deg") val latDeg: Double? = null,
    @SerialName("lon_deg") val lonDeg: Double? = null,
)

/** What the app says to be paired, and what the controller answers: see protocols/pairing. */
@Serializable
data class PairRequest(val version: Int, val role: String, val proof: String)

@Serializable
data class PairReply(val proof: String, val name: String, val role: String, val nodes: List<PairNode> = emptyList())

/** A node of the fleet, at [address] host:port. */
@Serializable
data class PairNode(val name: String, val address: String, val pin: String)

/** What the phone's receiver said, pushed to the node. Without a position, [mode] is 1. */
@Serializable
data class PushedFix(
    @SerialName("age_ms") val ageMs: Double,
    val mode: Int,
    @SerialName("time_utc") val timeUtc: String? = null,
    @SerialName("lat_deg") val latDeg: Double? = null,
    @SerialName("lon_deg") val lonDeg: Double? = null,
    @SerialName("speed_mps") val speedMps: Double? = null,
    @SerialName("track_deg") val trackDeg: Double? = null,
    @SerialName("speed_err_mps") val speedErrMps: Double? = null,
    @SerialName("horiz_err_m") val horizErrM: Double? = null,
    @SerialName("satellites_used") val satellitesUsed: Int? = null,
)
