package dev.fieldmesh.app.screen

import android.view.View
import android.widget.EditText
import android.widget.Switch
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.device.WifiLink

/** This phone as a node; the activity stands behind it. */
interface OwnNodeActions {
    /** Whether this app has the programs of a node. */
    val isBuilt: Boolean
    val isWanted: Boolean
    val isPaired: Boolean
    val name: String
    val state: NodeState
    val link: WifiLink?

    /** Whether that Wi-Fi has no internet. */
    val isLocal: Boolean

    fun want(name: String)

    fun unwant()
}

/** The switch that makes this phone a node, and what has come of it. */
class OwnNodeCard(private val view: View, private val nowNs: () -> Long, private val node: OwnNodeActions) {
    private val context = view.context
    private val switch: Switch = view.findViewById(R.id.own)
    private val name: EditText = view.findViewById(R.id.own_name)

    init {
        name.setText(node.name)
        switch.setOnClickListener { if (switch.isChecked) node.want(name.text.toString()) else node.unwant() }
    }

    fun show() {
        switch.isEnabled = node.isBuilt
        switch.isChecked = node.isWanted
        name.visibility = if (node.isBuilt && !node.isPaired && !node.isWanted) View.VISIBLE else View.GONE
        val lines = when {
            !node.isBuilt -> listOf(context.getString(R.string.own_absent))
            node.isWanted -> listOf(stateText(node.state)) + networkTexts()
            else -> emptyList()
        }
        view.findViewById<TextView>(R.id.own_state).apply {
            text = lines.joinToString("\n")
            setTextColor(context.getColor(if (node.state is NodeState.Failing) R.color.bad else R.color.text))
            visibility = if (lines.isEmpty()) View.GONE else View.VISIBLE
        }
    }

    private fun stateText(state: NodeState): String = when (state) {
        NodeState.Off -> context.getString(R.string.own_off)
        NodeState.Starting -> context.getString(R.string.own_starting)
        NodeState.Unpaired -> context.getString(R.string.own_unpaired, node.name)
        is NodeState.Running ->
            context.getString(R.string.own_running, node.name, (nowNs() - state.sinceNs) / MINUTE_NS)
        is NodeState.Failing -> context.getString(R.string.own_failing, state.said)
    }

    private fun networkTexts(): List<String> {
        val link = node.link ?: return listOf(context.getString(R.string.own_no_wifi))
        val address = link.address ?: context.getString(R.string.unknown)
        return listOfNotNull(
            context.getString(R.string.own_wifi, link.interfaceName, address),
            if (node.isLocal) context.getString(R.string.own_local) else null,
        )
    }

    private companion object {
        const val MINUTE_NS = 60_000_000_000L
    }
}
