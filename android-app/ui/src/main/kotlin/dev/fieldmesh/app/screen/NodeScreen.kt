package dev.fieldmesh.app.screen

import android.text.format.Formatter
import android.view.LayoutInflater
import android.view.View
import android.view.ViewGroup
import android.widget.Button
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Problem
import kotlin.math.abs

/** What Android reports about the phone itself; null what it does not tell. */
class Battery(val percent: Int, val celsius: Double)

/** What the Node screen does with the phone's own receiver and log; the activity stands behind it. */
interface PhoneActions {
    val own: OwnNodeActions
    val gpsRuns: Boolean
    val logging: Boolean

    /** Why the log ended by itself. */
    val logFault: String?

    /** Size of the logs that the phone keeps. */
    val logBytes: Long

    fun toggleGps()

    fun toggleLog()

    fun saveLog()
}

/** What the node is and has, and what stands in the way of a trial, each with its cure. */
class NodeScreen(
    override val view: View,
    private val nowNs: () -> Long,
    private val wallMs: () -> Long,
    private val battery: () -> Battery?,
    private val phone: PhoneActions,
) : Screen {
    private val context = view.context
    private val rows: ViewGroup = view.findViewById(R.id.rows)
    private val problems: ViewGroup = view.findViewById(R.id.problems)
    private val gps: Button = view.findViewById(R.id.gps)
    private val log: Button = view.findViewById(R.id.log)
    private val saveLog: Button = view.findViewById(R.id.save_log)
    private val own = OwnNodeCard(view, nowNs, phone.own)
    private var shown: Any? = null

    init {
        gps.setOnClickListener { phone.toggleGps() }
        log.setOnClickListener { phone.toggleLog() }
        saveLog.setOnClickListener { phone.saveLog() }
    }

    override fun show(state: AppState) {
        own.show()
        gps.setText(if (phone.gpsRuns) R.string.gps_stop else R.string.gps_start)
        log.setText(if (phone.logging) R.string.log_stop else R.string.log_start)
        saveLog.text = context.getString(R.string.log_save, size(phone.logBytes))
        view.findViewById<TextView>(R.id.log_fault).apply {
            text = phone.logFault?.let { context.getString(R.string.log_failed, it) }.orEmpty()
            visibility = if (phone.logFault == null) View.GONE else View.VISIBLE
        }
        saveLog.visibility = if (phone.logBytes > 0) View.VISIBLE else View.GONE
        val node = state.node
        val routing = state.campaign?.next
        val lines = lines(state)
        val found = node?.problems.orEmpty()
        val step = if (node == null) context.nextStep(state.drive.link) else ""
        val newest = listOf(lines, found, routing, step, state.nodeOldS)
        if (shown == newest) return // leaves a screen reader where it is
        shown = newest
        heading(node, state.nodeOldS)
        view.findViewById<TextView>(R.id.next_step).apply {
            text = step
            visibility = if (step.isEmpty()) View.GONE else View.VISIBLE
        }
        problems.removeAllViews()
        found.forEach(::addProblem)
        rows.removeAllViews()
        lines.forEach { (label, value) -> addRow(label, value) }
    }

    private fun heading(node: NodeStatus?, oldS: Long?) {
        val ready = when {
            node == null -> R.string.node_nothing
            node.problems.isEmpty() -> R.string.node_ready
            else -> R.string.node_problems
        }
        val old = oldS?.let { context.getString(R.string.node_old, it) }
        view.findViewById<TextView>(R.id.ready).text =
            listOfNotNull(context.getString(ready), old).joinToString("\n")
    }

    private fun lines(state: AppState): List<Pair<Int, String>> {
        val node = state.node ?: return emptyList()
        val toldNs = state.nodeNs ?: return emptyList()
        return lines(node, sinceMs = (nowNs() - toldNs) / 1e6, state)
    }

    private fun lines(n: NodeStatus, sinceMs: Double, state: AppState): List<Pair<Int, String>> = listOfNotNull(
        R.string.node_radio to radio(n),
        state.trial?.let { R.string.node_routing to it.routing.protocol },
        R.string.node_tcp to (state.trial?.tcp?.variant ?: n.congestionAvailable.joinToString(", ")),
        R.string.node_gps to
            listOfNotNull(gpsText(n.gps, n.gpsRateHz, sinceMs), refusal(state)).joinToString("\n"),
        R.string.node_clock to clock(n, sinceMs),
        battery()?.let {
            R.string.node_battery to context.getString(R.string.node_battery_state, it.percent, it.celsius)
        },
        R.string.node_disk to
            context.getString(R.string.node_disk_free, size(n.spool.diskFreeBytes), size(n.spool.usedBytes)),
        R.string.node_undo to undo(n),
        R.string.node_software to "${n.version}, Linux ${n.kernel}, ${n.arch}",
    )

    private fun radio(n: NodeStatus): String {
        val own = n.radio?.beside?.interfaceName
        return when {
            n.interfaceUp == true -> context.getString(R.string.node_radio_up, n.interfaceName)
            n.interfaceUp == false -> context.getString(R.string.node_radio_down, n.interfaceName)
            own != null -> context.getString(R.string.node_radio_beside, n.interfaceName, own)
            else -> context.getString(R.string.node_radio_missing, n.interfaceName)
        }
    }

    /** Why this phone's GPS is not the node's, in the node's words. */
    private fun refusal(state: AppState): String? = state.gpsRefusal?.takeIf { phone.gpsRuns }
        ?.run { context.getString(R.string.node_gps_refused, listOfNotNull(message, cure).joinToString("\n")) }

    private fun gpsText(gps: Gps?, rate: Double?, sinceMs: Double): String {
        if (gps == null || !gps.connected) return context.getString(R.string.node_gps_silent)
        val toldMs = gps.fixAgeMs
        if (gps.mode < 2 || toldMs == null) return context.getString(R.string.node_gps_none)
        val ageS = (toldMs + sinceMs) / 1e3
        val fix = if (rate == null) {
            context.getString(R.string.node_gps_fix, gps.mode, ageS)
        } else {
            context.getString(R.string.node_gps_rate, gps.mode, ageS, rate)
        }
        val isRough = gps.speedMps != null && gps.speedErrMps == null
        return if (isRough) fix + "\n" + context.getString(R.string.node_gps_rough) else fix
    }

    /** The answer was on its way for a while, and wall clocks are only ever data: seconds matter here, not less. */
    private fun clock(n: NodeStatus, sinceMs: Double): String {
        val off = (n.clock.wallNs / 1_000_000 + sinceMs - wallMs()) / 1000.0
        if (abs(off) < NEAR_S) return context.getString(R.string.node_clock_near)
        return context.getString(R.string.node_clock_off, context.getString(R.string.seconds, off))
    }

    private fun undo(n: NodeStatus): String {
        val failed = n.host.failed
        return when {
            failed.isNotEmpty() -> context.getString(R.string.restore_partly, failed.joinToString("\n"))
            n.host.pending.isEmpty() -> context.getString(R.string.node_undo_none)
            else -> changes(n.host.pending.size) + n.host.pending.joinToString("") { "\n$it" }
        }
    }

    private fun changes(count: Int): String = context.resources.getQuantityString(R.plurals.changes, count, count)

    private fun size(bytes: Long): String = Formatter.formatShortFileSize(context, bytes)

    private fun addProblem(problem: Problem) {
        val card = LayoutInflater.from(context).inflate(R.layout.node_problem, problems, false)
        card.findViewById<TextView>(R.id.found).text = "${problem.need}: ${problem.found}"
        card.findViewById<TextView>(R.id.cure).text = problem.cure
        problems.addView(card)
    }

    private fun addRow(label: Int, value: String) {
        val row = LayoutInflater.from(context).inflate(R.layout.node_row, rows, false)
        row.findViewById<TextView>(R.id.label).setText(label)
        row.findViewById<TextView>(R.id.value).text = value
        rows.addView(row)
    }

    private companion object {
        const val NEAR_S = 5.0
    }
}
