package dev.fieldmesh.core.wire

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

/** A run's plan as people may see it: all but the key that authenticates GO. */
@Serializable
data class Schedule(
    val run: String,
    val campaign: String,
    @SerialName("attempts_max") val attemptsMax: Int,
    val trials: List<Trial>,
)

/** One cell of the schedule; of its many fields those that a driver or a passenger needs. */
@Serializable
data class Trial(
    val number: Int,
    val block: Int,
    val repetition: Int,
    val pass: String? = null,
    val factors: Map<String, String>,
    val car: String? = null,
    val roadside: String? = null,
    val sender: String,
    val receiver: String,
    val initiator: String,
    @SerialName("speed_mps") val speedMps: Double? = null,
    val direction: String? = null,
    val course: Course,
    val gate: Gate,
    @SerialName("duration_s") val durationS: Double,
    val radio: Radio,
    val routing: Routing,
    val tcp: TcpProfile,
    val acceptance: Acceptance,
)

/** Where the car drives; distances along the road from the roadside node's mark, positive outbound. */
@Serializable
data class Course(
    val kind: String,
    @SerialName("start_m") val startM: Double,
    @SerialName("offset_m") val offsetM: Double,
    @SerialName("segment_m") val segmentM: Double? = null,
    @SerialName("length_m") val lengthM: Double? = null,
    @SerialName("accel_mps2") val accelMps2: Double,
    @SerialName("brake_mps2") val brakeMps2: Double,
    @SerialName("mark_m") val markM: Double? = null,
    @SerialName("site_lat_deg") val siteLatDeg: Double? = null,
    @SerialName("site_lon_deg") val siteLonDeg: Double? = null,
    @SerialName("heading_deg") val headingDeg: Double,
)

/** When the initiator may open the window; every part that is present must hold at once. */
@Serializable
data class Gate(
    @SerialName("speed_band") val speedBand: Boolean = false,
    @SerialName("hold_s") val holdS: Double? = null,
    @SerialName("place_m") val placeM: Double? = null,
    @SerialName("after_s") val afterS: Double? = null,
    @SerialName("timeout_s") val timeoutS: Double,
    @SerialName("lead_s") val leadS: Double,
)

@Serializable
data class Radio(val mode: String, val standard: String? = null, val channel: Int? = null)

@Serializable
data class Routing(val protocol: String)

@Serializable
data class TcpProfile(val variant: String)

/** A rule that is absent is not applied. */
@Serializable
data class Acceptance(
    @SerialName("speed_band_mps") val speedBandMps: Double? = null,
    @SerialName("in_band_share_min") val inBandShareMin: Double? = null,
    @SerialName("fix_mode_min") val fixModeMin: Int? = null,
    @SerialName("fix_age_ms_max") val fixAgeMsMax: Double? = null,
)
