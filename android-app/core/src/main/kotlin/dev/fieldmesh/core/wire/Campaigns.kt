// As protocols/campaigns has them, with its names but for those that mean something else in Kotlin.

package dev.fieldmesh.core.wire

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

/** The campaigns that a controller offers. */
@Serializable
data class Campaigns(val campaigns: List<Campaign>)

/** A campaign, what may be chosen of it, and what keeps this fleet from driving it. */
@Serializable
data class Campaign(
    val name: String,
    val title: String,
    val question: String,
    val scales: List<Scale>,
    @SerialName("speeds_mps") val speedsMps: List<Double> = emptyList(),
    val repetitions: Int? = null,
    val nodes: List<String>,
    val missing: List<String> = emptyList(),
    val refused: String? = null,
    @SerialName("range_test") val rangeTest: Boolean? = null,
)

/** A reduction that a campaign declares, besides the full one. */
@Serializable
data class Scale(val name: String, val text: String)

/** What is to be driven. What is absent is as the full campaign has it. */
@Serializable
data class Choice(
    val campaign: String,
    val scale: String? = null,
    @SerialName("speeds_mps") val speedsMps: List<Double>? = null,
    val repetitions: Int? = null,
)

/** What a choice takes, with every trial accepted at once. */
@Serializable
data class Planned(
    val trials: Int,
    @SerialName("time_s") val timeS: Double,
    @SerialName("road_m") val roadM: Double? = null,
    @SerialName("speeds_mps") val speedsMps: List<Double> = emptyList(),
    val repetitions: Int,
    val deviations: List<String> = emptyList(),
)

/** The fleet held against what a choice needs. */
@Serializable
data class Preflight(val ready: Boolean, val needs: List<Need>)

/** One need, of a node or of the campaign as a whole; [outcome] is met, unmet or unknown. */
@Serializable
data class Need(
    val node: String? = null,
    val need: String,
    val outcome: String,
    val found: String,
    val cure: String? = null,
)

/** Begins a run. The same again is the same run. */
@Serializable
data class RunRequest(val name: String, val choice: Choice)

/** The newest runs, newest first. */
@Serializable
data class Runs(val version: ULong, val runs: List<Run>)

/** A run as far as it has come; [phase] is running, paused, complete, ended or failed. */
@Serializable
data class Run(
    val name: String,
    val campaign: String,
    val place: String,
    val phase: String,
    val trials: Int,
    val accepted: Int,
    @SerialName("given_up") val givenUp: Int,
    @SerialName("left_s") val leftS: Double? = null,
    val said: String? = null,
    val sheet: Sheet? = null,
)

/** The throughput by speed so far, slowest first. */
@Serializable
data class Sheet(val speeds: List<SpeedMean>)

/** The mean throughput of the results at one speed. */
@Serializable
data class SpeedMean(
    @SerialName("speed_mps") val speedMps: Double,
    @SerialName("mean_bps") val meanBps: Double,
    val n: Int,
)

/**
 * What a run logged by place. Without [stretches] it is not known where both nodes were; [farthestM] is the greatest
 * distance at which anything came.
 */
@Serializable
data class Places(
    @SerialName("farthest_m") val farthestM: Double? = null,
    val stretches: List<Stretch>,
    val way: List<Spot>,
    @SerialName("roadside_lat_deg") val roadsideLatDeg: Double? = null,
    @SerialName("roadside_lon_deg") val roadsideLonDeg: Double? = null,
)

/**
 * What was logged between two distances, on average; absent is not known. [signalDbm] is of the other node's frames,
 * [wifiSignalDbm] of an access point's, as Android told the car's phone.
 */
@Serializable
data class Stretch(
    @SerialName("from_m") val fromM: Double,
    @SerialName("to_m") val toM: Double,
    val seconds: Int,
    @SerialName("speed_mps") val speedMps: Double? = null,
    @SerialName("signal_dbm") val signalDbm: Double? = null,
    @SerialName("throughput_bps") val throughputBps: Double? = null,
    @SerialName("lost_percent") val lostPercent: Double? = null,
    @SerialName("wifi_signal_dbm") val wifiSignalDbm: Double? = null,
)

/** A place of the car's way; [afterGap]: nothing was logged between it and the one before. */
@Serializable
data class Spot(
    @SerialName("lat_deg") val latDeg: Double,
    @SerialName("lon_deg") val lonDeg: Double,
    @SerialName("throughput_bps") val throughputBps: Double? = null,
    @SerialName("after_gap") val afterGap: Boolean? = null,
)

/** What a run can be shared as; none before anything was measured. */
@Serializable
data class RunFiles(val files: List<RunFile>)

/** One of them. */
@Serializable
data class RunFile(val name: String, val bytes: Long)
